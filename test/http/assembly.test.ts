/** Which parts of the service exist by its configuration, and in which order they handle a request. */
import { expect, jest, test } from "@jest/globals";
import type { RequestHandler } from "express";
import { pageRequests } from "../../src/admission/semaphores.ts";
import { CodedError } from "../../src/base/errors.ts";
import type { AppDeps } from "../../src/http/app.ts";
import type { McpDeps } from "../../src/http/mcp/endpoint.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { requestState } from "../../src/http/requestState.ts";
import type { Live } from "../../src/live/live.ts";
import { until } from "../harness/until.ts";
import { startServer, tokens } from "./server.ts";

const json = { "content-type": "application/json" };
const signedIn = { ...json, authorization: `Bearer ${tokens.good}` };
const preflight = { origin: "https://a.example", "access-control-request-method": "POST" };

test.each([
  ["/events/stream", "GET"],
  ["/events/tickets", "POST"],
])("%s is for pages of any origin, by %s, and exists with live events only", async (path, method) => {
  await using server = await startServer({ live: { bearer: async () => undefined } as unknown as Live });
  const allowed = await server.send({ method: "OPTIONS", path, headers: preflight });
  expect([allowed.status, allowed.headers["access-control-allow-methods"]]).toEqual([204, method]);
  const refused = await server.send({ method, path, headers: json });
  expect(refused.headers["access-control-allow-origin"]).toBe("*");
  expect(refused.status).not.toBe(404);
  for (const other of ["GET", "POST", "PUT"].filter((one) => one !== method)) {
    const answer = await server.send({ method: other, path });
    expect([answer.status, answer.headers.allow]).toEqual([405, method]);
  }
  await using without = await startServer();
  expect((await without.send({ method, path })).status).toBe(404);
});

const mcp = {
  authenticate: async (authorization: string | undefined) => {
    if (authorization === undefined) return { claims: { userId: null } };
    if (authorization !== `Bearer ${tokens.good}`) throw new CodedError("UNAUTHENTICATED", "No such token.");
    return { claims: { userId: "user-1" } };
  },
  schema: () => ({}),
  secret: "secret",
  baseUrl: "https://plat.example",
} as unknown as McpDeps;
const metadataPaths = ["/.well-known/oauth-protected-resource", "/.well-known/oauth-protected-resource/mcp"];

test.each(metadataPaths)("%s tells agents of any origin where the resource is", async (path) => {
  await using server = await startServer({ mcp });
  const { status, json: body, headers } = await server.send({ method: "GET", path });
  expect([status, body.resource]).toEqual([200, "https://plat.example/mcp"]);
  expect(headers["access-control-allow-origin"]).toBe("*");
  expect((await server.send({ method: "HEAD", path })).status).toBe(200);
  const posted = await server.send({ path });
  expect([posted.status, posted.headers.allow]).toEqual([405, "GET, HEAD"]);
});

test("agents send JSON by POST, with a token; what limits other requests limits theirs", async () => {
  const path = "/mcp";
  const before: string[] = [];
  const beforeBody: RequestHandler = (request, _response, next) => {
    before.push(`${request.path} ${requestState(request).claims?.userId}`);
    next(before.length > 1 ? new CodedError("RATE_LIMITED", "Wait.") : undefined);
  };
  await using server = await startServer({ mcp, beforeBody: [beforeBody] });
  const got = await server.send({ method: "GET", path });
  expect([got.status, got.headers.allow]).toEqual([405, "POST"]);
  expect((await server.send({ path, headers: { "content-type": "text/plain" } })).status).toBe(415);
  const visitor = await server.send({ path, headers: json, body: "{}" });
  expect([visitor.status, visitor.json.errors[0].extensions.code]).toEqual([401, "UNAUTHENTICATED"]);
  expect(visitor.headers["www-authenticate"]).toContain("https://plat.example/.well-known/");
  const foreign = await server.send({ path, headers: { ...signedIn, origin: "https://other.example" } });
  expect(foreign.status).toBe(403);
  expect(before).toEqual([]);
  const invalid = await server.send({ path, headers: signedIn, body: "{" });
  expect([invalid.status, invalid.json.errors[0].extensions.code]).toEqual([400, "BAD_USER_INPUT"]);
  const limited = await server.send({ path, headers: signedIn, body: "{}" });
  expect([limited.status, limited.json.errors[0].message]).toEqual([429, "Wait."]);
  expect(before).toEqual(["/mcp user-1", "/mcp user-1"]);
});

test("without agents, their paths do not exist", async () => {
  await using server = await startServer({ explorer: false });
  for (const path of [...metadataPaths, "/mcp"])
    expect([path, (await server.send({ path, headers: json })).status]).toEqual([path, 404]);
});

test.each([
  ["without the portal", { explorer: false, statements: true }, 404],
  ["without a reader of statements", { explorer: true, statements: false }, 404],
  ["with both", { explorer: true, statements: true }, 200],
])("the statements of operations can be read %s: %j", async (_name, { explorer, statements }, status) => {
  const readers = { isOperator: async () => true, plan: async () => [] };
  await using server = await startServer({ explorer, ...(statements && { statements: readers }) });
  const answer = await server.send({ path: "/explorer/sql", headers: json, body: '{"query":"{ ok }"}' });
  expect(answer.status).toBe(status);
});

test("the middlewares of statements run in the order of those of operations", async () => {
  const order: string[] = [];
  const note =
    (name: string): RequestHandler =>
    (request, _response, next) => {
      order.push(`${name} ${requestState(request).claims?.userId} ${typeof request.body?.query}`);
      next();
    };
  const statements = { isOperator: async () => true, plan: async () => [] };
  await using server = await startServer({
    statements,
    beforeBody: [note("a"), note("b")],
    beforeGraphql: [note("c"), note("d")],
  });
  const expected = ["a user-1 undefined", "b user-1 undefined", "c user-1 string", "d user-1 string"];
  for (const path of ["/graphql", "/explorer/sql"]) {
    order.length = 0;
    const answer = await server.send({ path, headers: signedIn, body: '{"query":"{ ok }"}' });
    expect([path, answer.status, order]).toEqual([path, 200, expected]);
  }
});

test.each([
  ["nothing comes before", {}, true],
  ["something comes before the body", { beforeBody: [] }, false],
  ["something comes before the operation", { beforeGraphql: [] }, false],
  ["no token is known", { authenticateKnown: undefined }, false],
  ["nothing is compiled", { findCompiled: undefined }, false],
] as [string, object, boolean][])(
  "if %s, requests are answered on the short path: %s",
  async (_name, deps, isShort) => {
    const authenticate = jest.fn(async () => ({ userId: null }));
    const all = {
      authenticate,
      authenticateKnown: () => ({ userId: "user-1" }),
      findCompiled: (request: object) => {
        requestState(request as never).compiled = { label: "ok" } as never;
        return true;
      },
      answerCompiled: async () => '{"data":{}}',
      ...deps,
    };
    await using server = await startServer(
      Object.fromEntries(Object.entries(all).filter(([, value]) => value !== undefined)) as Partial<AppDeps>,
    );
    expect((await server.graphql("{ ok }")).status).toBe(200);
    expect(authenticate).toHaveBeenCalledTimes(isShort ? 0 : 1);
  },
);

test("users of the demo sign in at the portal, but never in production", async () => {
  const demo = { people: [{ name: "Ann" }] } as never;
  for (const production of [false, true]) {
    await using server = await startServer({ demo, production });
    const { json: body } = await server.send({ method: "GET", path: "/portal/demo.json" });
    expect(body.people).toHaveLength(production ? 0 : 1);
  }
});

test("requests are counted when they have ended, and other numbers are read when they are asked for", async () => {
  const metrics = createMetrics();
  const numbers = jest.fn(() => ({ pools: {}, documents: { documents: 7, bytes: 1, hits: 0, misses: 0 } }));
  await using server = await startServer({ metrics, numbers: numbers as never });
  await server.graphql("{ ok }");
  await until(() => server.log.some(({ event }) => event === "http.request"));
  const { text } = await metrics.render();
  expect(numbers).toHaveBeenCalled();
  expect(text).toMatch(/plat_http_requests_total\{route="\/graphql",method="POST",status="200"\} 1/);
});

test.each([
  ["trackers", "/t/k", "GET"],
  ["unsubscribe", "/unsubscribe/k", "GET"],
  ["signing", "/sign/k", "GET"],
  ["calendars", "/calendars/k.ics", "GET"],
  ["consent", "/integrations/callback", "GET"],
  ["paymentsWebhook", "/webhooks/payments", "POST"],
])("a page takes its turn among those of its network: %s", async (name, path, method) => {
  let held = 0;
  const page: RequestHandler = (_request, response) => {
    held = pageRequests.numbers.held;
    response.end();
  };
  await using server = await startServer({ [name]: page });
  expect((await server.send({ path, method })).status).toBe(200);
  expect(held).toBe(1);
  await until(() => pageRequests.numbers.held === 0);
});

test("a form that is too long or malformed is refused before its page", async () => {
  const page = jest.fn<RequestHandler>((_request, response) => void response.json({}));
  await using server = await startServer({ signing: page as never });
  const post = (body: string, headers: Record<string, string> = {}) =>
    server.send({
      path: "/sign/k",
      headers: { "content-type": "application/x-www-form-urlencoded", ...headers },
      body,
    });
  const refusal = ({ status, json: body }: Awaited<ReturnType<typeof post>>) => [
    status,
    body.errors[0].extensions.code,
    body.errors[0].message,
    body.errors[0].extensions.limit,
  ];
  expect((await post(`a=${"x".repeat(16_382)}`)).status).toBe(200);
  expect(refusal(await post(`a=${"x".repeat(16_383)}`))).toEqual([
    413,
    "PAYLOAD_TOO_LARGE",
    "The form exceeds 16 KB.",
    16_384,
  ]);
  const malformed = [400, "BAD_USER_INPUT", "The form is malformed.", undefined];
  expect(refusal(await post("a=b", { "content-encoding": "unknown" }))).toEqual(malformed);
  const fields = (count: number) => Array.from({ length: count }, (_, n) => `a${n}=1`).join("&");
  expect((await post(fields(10))).status).toBe(200);
  expect(refusal(await post(fields(11)))).toEqual(malformed);
  expect(page).toHaveBeenCalledTimes(2);
});
