import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startServer, type TestServer, tokens } from "./server.ts";
import { until } from "../harness/until.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server[Symbol.asyncDispose]());

const send = (headers: Record<string, string | string[]>) =>
  server.send({
    headers: { "content-type": "application/json", ...headers },
    body: JSON.stringify({ query: "{ ok }" }),
  });

test.each([
  "Bearer wrong",
  "Bearer ",
  "Bearer",
  "bearer",
  "Bearer a b",
  "Bearer a,b",
  'Bearer "good-token"',
  "Basic dXNlcjpwYXNz",
  "Token good-token",
  "good-token",
  "Bearer good-token, Bearer good-token",
  `Bearer ${"x".repeat(5000)}`,
  "Bearer eyJhbGciOiJub25lIn0.e30.",
])("Authorization: %p is refused with 401 and a challenge", async (authorization) => {
  const answer = await send({ authorization });
  expect(answer.status).toBe(401);
  expect(answer.headers["www-authenticate"]).toMatch(/^Bearer realm="plat"/);
  expect(answer.json.errors[0].extensions).toMatchObject({ code: "UNAUTHENTICATED" });
  expect(answer.json).not.toHaveProperty("data");
});

test("two Authorization headers are refused, even with the same valid token", async () => {
  const authorization = [`Bearer ${tokens.good}`, `Bearer ${tokens.good}`];
  expect((await send({ authorization })).status).toBe(401);
});

test("a header whose name is as long as Authorization is not taken for it", async () => {
  // The value is no token.
  const headers = { "x-other-token": "nothing", authorization: `Bearer ${tokens.good}` };
  expect(Object.keys(headers)[0]).toHaveLength("authorization".length);
  expect((await send(headers)).json).toMatchObject({ data: { ok: true } });
});

test.each([`Bearer ${tokens.good}`, `bearer ${tokens.good}`, `BEARER   ${tokens.good}`])(
  "%p is accepted",
  async (authorization) => {
    expect((await send({ authorization })).json).toMatchObject({ data: { ok: true } });
  },
);

test("an unreachable database during the token's look-up results in UNAVAILABLE, without details", async () => {
  const answer = await send({ authorization: `Bearer ${tokens.databaseDown}`, "x-request-id": "down-1" });
  expect(answer.status).toBe(503);
  expect(answer.json.errors[0].extensions).toEqual({
    code: "UNAVAILABLE",
    key: "theDatabaseCannotBeReachedOr",
    parameters: ["5"],
    retryAfterSeconds: 5,
    requestId: "down-1",
  });
  expect(answer.text).not.toMatch(/ECONN|10\.1\.2\.3|5432/);
  const logged = server.log.find((line) => line.requestId === "down-1" && line.event === "http.failed");
  expect(logged).toMatchObject({ err: { code: "ECONNREFUSED" } });
});

test("logs contain the request, operation and viewer, and never tokens, variables or messages", async () => {
  const answer = await server.graphql(
    "query Named($secret: String) { echo(text: $secret) }",
    { secret: "hunter2-hunter2" },
    { authorization: `Bearer ${tokens.good}`, "x-request-id": "logged-1" },
  );
  expect(answer.status).toBe(200);
  const done = () => server.log.find((line) => line.requestId === "logged-1" && line.msg === "request");
  await until(async () => (await send({}), done()));
  expect(done()).toMatchObject({
    method: "POST",
    path: "/graphql",
    status: 200,
    operationName: "Named",
    operationType: "query",
    userId: "user-1",
  });
  expect(typeof done()!.durationMs).toBe("number");
  const everything = JSON.stringify(server.log);
  expect(everything).not.toContain("hunter2");
  expect(everything).not.toContain(tokens.good);
});
