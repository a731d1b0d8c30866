/**
 * The short path of a request (src/http/shortPath.ts) compared with the chain of middlewares: the same status,
 * headers, body, log lines and metrics for all requests. Both servers have the same parts, but one of them caches no
 * token and therefore has no short path.
 */
import { connect } from "node:tls";
import { gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { CompiledQuery } from "../../src/compiled/compiledQueries.ts";
import { Positions } from "../../src/database/position.ts";
import type { AppDeps } from "../../src/http/app.ts";
import { createMetrics, type Metrics } from "../../src/http/metrics.ts";
import { requestState } from "../../src/http/requestState.ts";
import { createTrustedDocuments } from "../../src/http/trustedDocuments.ts";
import { until } from "../harness/until.ts";
import { type Answer, startServer, type TestServer, tokens } from "./server.ts";

/** Responses of compiled queries by document; undefined if the plan must be used. */
const compiled: Record<string, () => string | undefined> = {
  "query Fine { ok }": () => '{"data":{"ok":true}}',
  "query Tagged($n: Int) { ok }": () => '{"data":{"ok":true}}',
  "query Accents { ok }": () => '{"data":{"echo":"Zoë, 北京"}}',
  "query Large { tags }": () => JSON.stringify({ data: { tags: "a tag ".repeat(2_000).split(" ") } }),
  "query Huge { tags }": () => JSON.stringify({ data: { tags: "a tag ".repeat(40_000).split(" ") } }),
  "query Failing { ok }": () => undefined,
  "query Broken { ok }": () => {
    throw new Error("A fault of the service");
  },
};
const [FINE, TAGGED, ACCENTS, LARGE, HUGE, FAILING, BROKEN] = Object.keys(compiled) as [
  string,
  ...string[],
] as string[];
const CURRENT = 'W/"current"';
const positions = new Positions("1");
const registered = new Map([
  ["fine", FINE!],
  ["tagged", TAGGED!],
  ["planned", "query Planned { ok }"],
  ["change", 'mutation Change { createLead(input: {email: "a"}) { id } }'],
]);

interface Side {
  server: TestServer;
  metrics: Metrics;
  /** Requests whose compiled query was answered before the chain. */
  short: number;
}

async function start(hasShortPath: boolean, more: Partial<AppDeps["config"]>): Promise<Side> {
  const metrics = createMetrics();
  const side = { metrics, short: 0 } as Side;
  const parts: { -readonly [Name in keyof AppDeps]?: AppDeps[Name] } = {
    metrics,
    positions,
    documents: createTrustedDocuments({ find: async (id) => registered.get(id), only: false }),
    findCompiled: (request) => {
      const state = requestState(request);
      const { query } = request.body as { query: string };
      state.compiled = query in compiled ? ({ label: "fine" } as CompiledQuery) : null;
      if (!state.compiled) return false;
      state.operationType = "query";
      state.operationName = /\w+ (\w+)/.exec(query)![1];
      return true;
    },
    answerCompiled: async (request, work) => {
      // The chain knows the response of a request.
      if (!("next" in request)) side.short += 1;
      work.position = 5n;
      return compiled[(request.body as { query: string }).query]!();
    },
    tagOf: async (request) =>
      (request.body as { query: string }).query === TAGGED ? { text: CURRENT, reached: 5n } : undefined,
  };
  const authenticateKnown: AppDeps["authenticateKnown"] = (authorization) => {
    if (authorization === undefined) return { userId: null };
    if (authorization === "Bearer misspelled") throw new Error("It is misspelled.");
    return authorization === `Bearer ${tokens.good}` ? { userId: "user-1" } : undefined;
  };
  const known = hasShortPath ? { authenticateKnown } : {};
  side.server = await startServer({ production: true, explorer: false, ...more, ...parts, ...known });
  return side;
}

let sides: { short: Side; long: Side; shortBehind: Side; longBehind: Side };
beforeAll(async () => {
  const behind = { trustProxy: ["127.0.0.1"] };
  sides = {
    short: await start(true, {}),
    long: await start(false, {}),
    shortBehind: await start(true, behind),
    longBehind: await start(false, behind),
  };
});
afterAll(async () => {
  for (const { server } of Object.values(sides)) await server[Symbol.asyncDispose]();
});

interface Sent {
  method?: string;
  path?: string;
  headers?: Record<string, string | string[]>;
  body?: string | Uint8Array;
  /** Whether the chain handles it, from the beginning or later. */
  isLong?: true;
  /** Whether it comes from a proxy. */
  isForwarded?: true;
}

const good = { authorization: `Bearer ${tokens.good}` };
const post = (query: string, headers: Sent["headers"] = good, more: object = {}): Sent => ({
  headers: { "content-type": "application/json", ...headers },
  body: JSON.stringify({ query, ...more }),
});
const get = (search: string, headers: Sent["headers"] = good): Sent => ({
  method: "GET",
  path: `/graphql?${search}`,
  headers,
});
const long = (sent: Sent): Sent => ({ ...sent, isLong: true });
const sentBy = (sent: Sent, headers: Record<string, string>): Sent => ({
  ...sent,
  isForwarded: true,
  headers: { ...sent.headers, ...headers },
});

/** With a body of this many bytes. */
const ofLength = (length: number) => {
  const around = (post(FINE!, good, { variables: { a: "" } }).body as string).length;
  return post(FINE!, good, { variables: { a: "a".repeat(length - around) } });
};

const position = positions.write(5n);
const sent: Record<string, Sent> = {
  "of a viewer": post(FINE!),
  "of a visitor": post(FINE!, {}),
  "with an operation name and variables": post(FINE!, good, {
    operationName: "Fine",
    variables: { a: ["ö"] },
  }),
  "with unknown properties": post(FINE!, good, { more: 1, extensions: {} }),
  "with accents in the answer": post(ACCENTS!),
  "that accepts anything": post(FINE!, { ...good, accept: "*/*" }),
  "that accepts the other type": post(FINE!, { ...good, accept: "application/graphql-response+json" }),
  "that prefers the other type": post(FINE!, {
    ...good,
    accept: "application/json;q=0.5, application/graphql-response+json",
  }),
  "that accepts events, too": long(post(FINE!, { ...good, accept: "application/json, text/event-stream" })),
  "that accepts neither": long(post(FINE!, { ...good, accept: "text/html" })),
  "of a page of another origin": post(FINE!, { ...good, origin: "https://app.example" }),
  "with a spaced token": post(FINE!, { authorization: `  Bearer ${tokens.good}  ` }),
  "with another spelling of the token": long(post(FINE!, { authorization: `bearer ${tokens.good}` })),
  "with a token that is looked up": long(post(FINE!, { authorization: "Bearer unknown" })),
  "with a misspelled token": long(post(FINE!, { authorization: "Bearer misspelled" })),
  "with no token": long(post(FINE!, { authorization: "good-token" })),
  "with two tokens": long(post(FINE!, { authorization: [good.authorization, good.authorization] })),
  "with an idempotency key": post(FINE!, { ...good, "idempotency-key": "1" }),
  "with a position": post(FINE!, { ...good, "plat-position": position }),
  "with a position in its body": post(FINE!, good, { extensions: { position } }),
  "with an invalid position": post(FINE!, { ...good, "plat-position": "none" }),
  "that is not compiled": long(post("query Planned { ok }")),
  "that is invalid": long(post("{ nothing }")),
  "whose statement fails": post(FAILING!),
  "whose statement fails, of a visitor": post(FAILING!, {}),
  "with an internal error": post(BROKEN!),
  "with a large answer to a viewer": post(LARGE!, { ...good, "accept-encoding": "br, gzip" }),
  "with a large answer to a visitor": post(LARGE!, { "accept-encoding": "gzip" }),
  "with a huge answer": post(HUGE!),
  "that requests an entity tag": post(TAGGED!, { ...good, "if-none-match": '""' }),
  "with the current tag": post(TAGGED!, { ...good, "if-none-match": CURRENT }),
  "with the current tag, of a visitor": post(TAGGED!, { "if-none-match": CURRENT }),
  "with the current tag, but not before a later position": post(TAGGED!, {
    ...good,
    "if-none-match": CURRENT,
    "plat-position": positions.write(6n),
  }),
  "with a tag of a response without one": post(FINE!, { ...good, "if-none-match": CURRENT }),
  "by GET": get("documentId=fine"),
  "by GET, of a visitor": get("documentId=tagged", {}),
  "by GET, with the current tag": get(`documentId=tagged&variables=${encodeURIComponent('{"n":1}')}`, {
    ...good,
    "if-none-match": CURRENT,
  }),
  "by GET, with any tag": get("documentId=tagged", { ...good, "if-none-match": "*" }),
  "by GET, not compiled": long(get("documentId=planned")),
  "by GET, of an unknown document": long(get("documentId=unknown")),
  "by GET, of a mutation": long(get("documentId=change")),
  "by GET, with variables that are no JSON": long(get("documentId=fine&variables={")),
  "by GET, with a text": long(get("query={ok}")),
  "by GET, with a body": long({ ...get("documentId=fine", { ...good, "content-length": "2" }), body: "{}" }),
  "by its registered id": { ...post("", good), body: '{"documentId":"fine"}' },
  "by an unknown id": long({ ...post("", good), body: '{"documentId":"unknown"}' }),
  "that is not JSON": long({ ...post(""), body: "{" }),
  "that is empty": long({ ...post(""), body: "" }),
  "that is a batch": long({ ...post(""), body: "[]" }),
  "without a query": long({ ...post(""), body: "{}" }),
  "with NUL": long(post(FINE!, good, { variables: { a: "\0" } })),
  "that is not UTF-8": long({ ...post(""), body: Buffer.from([0x22, 0xff, 0x22]) }),
  "that is nested deeply": long({ ...post(""), body: "[".repeat(100) }),
  "with a larger body": long(post(FINE!, good, { variables: { a: "a".repeat(20_000) } })),
  "with a small body": ofLength(16_384),
  "with a body that is no longer small": long(ofLength(16_385)),
  "of another type": long({ ...post(FINE!), headers: { ...good, "content-type": "text/plain" } }),
  "with a charset": long({
    ...post(FINE!),
    headers: { ...good, "content-type": "application/json; charset=utf-8" },
  }),
  "that is compressed": long({
    headers: { ...good, "content-type": "application/json", "content-encoding": "gzip" },
    body: gzipSync(JSON.stringify({ query: FINE })),
  }),
  "of unknown length": long(post(FINE!, { ...good, "transfer-encoding": "chunked" })),
  "by another method": long({ ...post(FINE!), method: "PUT" }),
  "at another path": long({ ...post(FINE!), path: "/graphql/" }),
  "with a query string": long({ ...post(FINE!), path: "/graphql?a=1" }),
  "from a proxy": sentBy(post(FINE!), { "x-forwarded-for": "192.0.2.7", "x-forwarded-proto": "https" }),
  "from a proxy, of a visitor": sentBy(post(LARGE!, {}), { "x-forwarded-for": "192.0.2.7" }),
  "from a proxy that got it without TLS": long(sentBy(post(FINE!), { "x-forwarded-proto": "http" })),
};

/** Properties that differ between requests. */
const hidden = new Set(["date", "time", "durationMs", "stack"]);
const without = (members: object): object =>
  JSON.parse(JSON.stringify(members, (name, value) => (hidden.has(name) ? undefined : value)));

/** The metrics of requests. */
async function counts({ metrics }: Side): Promise<string[]> {
  const { text } = await metrics.render();
  return text
    .split("\n")
    .filter((line) => /^plat_(http_requests_total|errors_total|\w+_duration_seconds_count)\{/.test(line))
    .filter((line) => !line.includes("database"))
    .toSorted();
}

const lineOf = ({ server }: Side, id: string) =>
  until(
    () => server.log.find(({ requestId, event }) => requestId === id && event === "http.request"),
    (line) => line,
  );

async function responseOf(side: Side, id: string, one: Sent) {
  const before = side.short;
  const { status, headers, text }: Answer = await side.server.send({
    ...one,
    headers: { "x-request-id": id, ...one.headers },
  });
  await lineOf(side, id);
  const lines = side.server.log.filter(({ requestId }) => requestId === id);
  return {
    answer: { status, headers: without(headers), text, lines: lines.map(without) },
    wasShort: side.short > before,
  };
}

test.each(Object.entries(sent))("a request %s has the response of the chain", async (title, one) => {
  const id = title.replaceAll(/\W+/g, "-");
  const [short, other] = one.isForwarded
    ? ([sides.shortBehind, sides.longBehind] as const)
    : ([sides.short, sides.long] as const);
  // Twice, because a registered document is looked up first.
  for (const time of [1, 2]) {
    const here = await responseOf(short, `${id}-${time}`, one);
    const there = await responseOf(other, `${id}-${time}`, one);
    expect(here.answer).toEqual(there.answer);
    expect(there.wasShort).toBe(false);
    const isQuery = here.answer.status === 200 || one.body?.toString().includes("Broken");
    const isAnswered = time === 2 && isQuery && !here.answer.text.startsWith('{"errors"');
    expect({ title, wasShort: here.wasShort }).toEqual({
      title,
      wasShort: isAnswered ? !one.isLong : here.wasShort,
    });
  }
});

test("a client that disconnects before its body is complete is logged in the same way", async () => {
  const lines: unknown[] = [];
  for (const side of [sides.short, sides.long]) {
    const socket = connect({ port: side.server.port, host: "127.0.0.1", rejectUnauthorized: false });
    socket.on("error", () => {});
    socket.write(
      `POST /graphql HTTP/1.1\r\nHost: localhost\r\nX-Request-Id: gone\r\nContent-Type: application/json\r\nContent-Length: 100\r\n\r\n{"query"`,
      () => socket.destroy(),
    );
    lines.push(without((await lineOf(side, "gone"))!));
  }
  expect(lines[0]).toEqual(lines[1]);
  expect(lines[0]).toMatchObject({ aborted: true, errorCodes: ["BAD_USER_INPUT"] });
});

test("bodies in pieces and pipelined requests are answered in order", async () => {
  for (const side of [sides.short, sides.long]) {
    const answers: string = await new Promise((resolve, reject) => {
      let text = "";
      const socket = connect({ port: side.server.port, host: "127.0.0.1", rejectUnauthorized: false });
      socket.on("error", reject);
      socket.setEncoding("utf8").on("data", (part: string) => {
        text += part;
        if (text.split('{"data"').length > 3) socket.end();
      });
      socket.on("close", () => resolve(text));
      const body = JSON.stringify({ query: FINE });
      const head = `POST /graphql HTTP/1.1\r\nHost: localhost\r\nAuthorization: Bearer ${tokens.good}\r\nContent-Type: application/json\r\nContent-Length: ${body.length}\r\n`;
      const whole = (id: string) => `${head}X-Request-Id: ${id}\r\n\r\n${body}`;
      socket.write(`${whole("one")}${whole("two")}${head}X-Request-Id: three\r\n\r\n${body.slice(0, 5)}`);
      socket.write(body.slice(5, 9), () => setImmediate(() => socket.write(body.slice(9))));
    });
    expect([...answers.matchAll(/X-Request-Id: (\w+)/g)].map(([, id]) => id)).toEqual([
      "one",
      "two",
      "three",
    ]);
  }
});

test("requests are counted in the same way", async () => {
  expect(await counts(sides.short)).toEqual(await counts(sides.long));
  expect(await counts(sides.shortBehind)).toEqual(await counts(sides.longBehind));
  expect((await counts(sides.short)).join("\n")).toMatch(
    /plat_http_requests_total\{route="\/graphql",method="POST",status="304"\} \d/,
  );
});
