/** POST /explorer/sql without a database: which statements of an operation are returned, and who may ask. */
import { afterEach, expect, jest, test } from "@jest/globals";
import type { CompiledQuery } from "../../src/compiled/compiledQueries.ts";
import type { TracedStatement } from "../../src/database/statementTrace.ts";
import { statementReaders, type StatementsDeps } from "../../src/http/operationStatements.ts";
import { beginRequest, requestState, type RequestState } from "../../src/http/requestState.ts";
import { startServer, tokens } from "./server.ts";

const closing: (() => PromiseLike<unknown>)[] = [];
afterEach(async () => {
  for (const close of closing.splice(0)) await close();
});

const path = "/explorer/sql";
const statement = (more: Partial<TracedStatement> = {}): TracedStatement => ({
  text: "select 1",
  values: ["a", 2],
  ms: 1.23456,
  rows: 3,
  ...more,
});

/** A service whose operations have executed these statements. */
async function start(
  statements: readonly TracedStatement[],
  {
    isQuery = true,
    plan = async () => ["Result"],
    ...more
  }: Partial<StatementsDeps> & Record<string, any> = {},
) {
  const server = await startServer({
    statements: { isOperator: async () => false, plan },
    findCompiled: (request) => {
      requestState(request).compiled = { label: "ok" } as CompiledQuery;
      return true;
    },
    answerCompiled: async (_request, work) => {
      work.isQuery = isQuery;
      for (const one of statements) work.trace!.ran(one);
      return '{"data":{"ok":true}}';
    },
    ...more,
  });
  closing.push(() => server[Symbol.asyncDispose]());
  return async (search = "", headers: Record<string, string> = {}) => {
    const answer = await server.send({
      path: path + search,
      headers: { "content-type": "application/json", ...headers },
      body: '{"query":"{ ok }"}',
    });
    return { ...answer, statements: answer.json?.statements as Record<string, any>[] };
  };
}

test("an operation is answered with its statements, whatever the client accepts", async () => {
  const ask = await start([statement(), statement({ text: "select 2", ms: 2, rows: null, values: [] })], {
    tagOf: async () => ({ text: 'W/"current"', reached: 5n }),
  });
  const { status, headers, json } = await ask("", {
    accept: "text/event-stream",
    "if-none-match": 'W/"current"',
  });
  expect([status, headers["content-type"], headers["cache-control"], headers.etag]).toEqual([
    200,
    "application/json; charset=utf-8",
    "no-store",
    undefined,
  ]);
  expect(json).toEqual({
    answer: { data: { ok: true } },
    statements: [
      { text: "select 1", values: ["a", 2], ms: 1.23, rows: 3 },
      { text: "select 2", values: [], ms: 2, rows: null },
    ],
    more: 0,
  });
});

test("fifty statements are returned, and the number of the others", async () => {
  const ask = await start(Array.from({ length: 53 }, (_, rows) => statement({ rows })));
  const { json, statements } = await ask();
  expect([json.more, statements.map(({ rows }) => rows)]).toEqual([3, [...Array(50).keys()]]);
});

test("texts and plans are cut, and values omitted, from 20,001 characters on", async () => {
  const [most, more] = ["x".repeat(20_000), "x".repeat(20_001)];
  const value = (length: number) => ["x".repeat(length - '[""]'.length)];
  const plans = [[most], [more], ["x".repeat(10_000), "x".repeat(10_000)]];
  const ask = await start(
    [
      statement({ text: most, values: value(20_000) }),
      statement({ text: more, values: value(20_001) }),
      statement(),
    ],
    { plan: async () => plans.shift()! },
  );
  const { statements } = await ask("?plans=true");
  expect(statements.map(({ text }) => text)).toEqual([most, `${most} …`, "select 1"]);
  expect(statements.map(({ values }) => values?.[0].length)).toEqual([19_996, undefined, 1]);
  expect(statements[1]).not.toHaveProperty("values");
  expect(statements.map(({ plan }) => plan)).toEqual([
    most,
    `${most} …`,
    `${"x".repeat(10_000)}\n${"x".repeat(9_999)} …`,
  ]);
});

test("values of a mutation are omitted, as they may be secrets", async () => {
  const ask = await start([statement()], { isQuery: false });
  expect((await ask()).statements).toEqual([{ text: "select 1", ms: 1.23, rows: 3 }]);
});

test("plans are made on request, of the first twenty statements; one that cannot be made is omitted", async () => {
  const asked: unknown[] = [];
  const ask = await start(
    Array.from({ length: 25 }, (_, n) => statement({ text: `select ${n}`, values: [n] })),
    {
      plan: async (request, one) => {
        asked.push([request.path, one]);
        if (one.text === "select 3") throw new Error("It cannot be explained.");
        return ["Limit", "  Result"];
      },
    },
  );
  for (const search of ["", "?plans", "?plans=false"]) {
    const { statements } = await ask(search);
    expect(statements.filter((one) => "plan" in one)).toEqual([]);
  }
  expect(asked).toEqual([]);
  const { status, statements } = await ask("?plans=true");
  expect(status).toBe(200);
  expect(asked).toEqual(Array.from({ length: 20 }, (_, n) => [path, { text: `select ${n}`, values: [n] }]));
  expect(statements.map(({ plan }) => plan)).toEqual(
    Array.from({ length: 25 }, (_, n) => (n < 20 && n !== 3 ? "Limit\n  Result" : undefined)),
  );
});

const forbidden = "Only operators of the service may do this. The owner of the database appoints operators.";

test("in production, only operators may ask, and nothing is executed for others", async () => {
  const isOperator = jest.fn(async () => true);
  const answerCompiled = jest.fn(async () => '{"data":{}}');
  const ask = await start([], {
    production: true,
    answerCompiled,
    statements: { isOperator, plan: async () => [] },
  });
  const refusal = ({ status, json }: { status: number; json: any }) => [
    status,
    json.errors[0].extensions.code,
    json.errors[0].message,
  ];
  expect(refusal(await ask())).toEqual([401, "UNAUTHENTICATED", expect.any(String)]);
  expect(isOperator).not.toHaveBeenCalled();
  const signedIn = { authorization: `Bearer ${tokens.good}` };
  isOperator.mockResolvedValueOnce(false);
  expect(refusal(await ask("", signedIn))).toEqual([403, "FORBIDDEN", forbidden]);
  expect(answerCompiled).not.toHaveBeenCalled();
  const { status, json } = await ask("", signedIn);
  expect([status, json]).toEqual([200, { answer: { data: {} }, statements: [], more: 0 }]);
});

test("the token is verified before the role of its viewer, and only in production", async () => {
  const calls: string[] = [];
  const state = {
    claims: { userId: "u1" },
    tokenCheck: { complete: async () => void calls.push("token") },
  } as unknown as RequestState;
  const request = { headers: {} } as never;
  beginRequest(request, state);
  const isOperator = async () => {
    calls.push("operator");
    return true;
  };
  const readers = (production: boolean) =>
    statementReaders({ isOperator, plan: async () => [] }, production)(request, {} as never, () =>
      calls.push("next"),
    );
  await readers(true);
  expect(calls.splice(0)).toEqual(["token", "operator", "next"]);
  await readers(false);
  expect(calls.splice(0)).toEqual(["next"]);
  state.tokenCheck = undefined;
  await readers(true);
  expect(calls).toEqual(["operator", "next"]);
});

test("another method or media type is refused", async () => {
  const ask = await start([]);
  expect((await ask("", { "content-type": "text/plain" })).status).toBe(415);
  const server = await startServer({ statements: { isOperator: async () => true, plan: async () => [] } });
  closing.push(() => server[Symbol.asyncDispose]());
  const got = await server.send({ path, method: "GET" });
  expect([got.status, got.headers.allow]).toEqual([405, "POST"]);
});
