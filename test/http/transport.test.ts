import { connect } from "node:net";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { type Answer, startServer, type TestServer } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ production: true, explorer: false });
});
afterAll(async () => server[Symbol.asyncDispose]());

const json = { "content-type": "application/json" };
const okBody = JSON.stringify({ query: "{ ok }" });

/** Asserts the common format of refusals, and returns status and code. */
function refusal(answer: Answer): [status: number, code: string] {
  const { status, headers, json: body } = answer;
  expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(body).toEqual({
    errors: [{ message: expect.stringMatching(/\.$/), extensions: expect.anything() }],
  });
  expect(body.errors[0].extensions.requestId).toBe(headers["x-request-id"]);
  return [status, body.errors[0].extensions.code];
}

/** Writes bytes to the port and returns everything received until the connection ends. */
function raw(bytes: string | Uint8Array, port = server.port): Promise<string> {
  return new Promise((resolve, reject) => {
    let text = "";
    const socket = connect(port, "127.0.0.1", () => socket.write(bytes));
    socket.on("data", (chunk) => (text += chunk.toString()));
    socket.on("error", reject);
    socket.on("close", () => resolve(text));
  });
}

test("plain HTTP on the same port is refused with an explanation", async () => {
  const answer = await server.send({ plain: true, headers: json, body: okBody });
  expect(refusal(answer)).toEqual([403, "FORBIDDEN"]);
  expect(answer.json.errors[0].message).toMatch(/https/);
  expect(answer.headers.connection).toBe("close");
});

test("a forwarded protocol is ignored when no proxy is trusted", async () => {
  const headers = { ...json, "x-forwarded-proto": "https" };
  expect(refusal(await server.send({ plain: true, headers, body: okBody }))).toEqual([403, "FORBIDDEN"]);
});

test("the header of a trusted proxy determines the protocol, in both directions", async () => {
  await using behind = await startServer({ trustProxy: ["127.0.0.1"] });
  const forwarded = (proto: string) => ({ ...json, "x-forwarded-proto": proto });
  const served = await behind.send({ plain: true, headers: forwarded("https"), body: okBody });
  expect(served.json.data).toEqual({ ok: true });
  expect(refusal(await behind.send({ plain: true, headers: json, body: okBody }))).toEqual([
    403,
    "FORBIDDEN",
  ]);
  expect(refusal(await behind.send({ headers: forwarded("http"), body: okBody }))).toEqual([
    403,
    "FORBIDDEN",
  ]);
  await using elsewhere = await startServer({ trustProxy: ["10.0.0.1"] });
  expect(refusal(await elsewhere.send({ plain: true, headers: forwarded("https"), body: okBody }))).toEqual([
    403,
    "FORBIDDEN",
  ]);
});

test("bytes that are neither TLS nor HTTP are refused and the connection ends", async () => {
  expect(await raw("\x00\x01\x02\r\n\r\n")).toMatch(/^HTTP\/1\.1 400[\s\S]*"BAD_USER_INPUT"/);
  expect(await raw(Buffer.from([0x16, 0x00, 0x00, 0x00, 0x00, 0x00]))).not.toMatch(/HTTP/);
  expect(await raw(`GET / HTTP/1.1\r\nX-Big: ${"x".repeat(20_000)}\r\n\r\n`)).toMatch(/^HTTP\/1\.1 431/);
});

test.each(["GET", "PUT", "DELETE", "PATCH", "OPTIONS"])("%s is refused with Allow: POST", async (method) => {
  const answer = await server.send({ method, path: "/graphql?query=%7Bok%7D", headers: json });
  expect(answer.headers.allow).toBe("POST");
  expect(refusal(answer)).toEqual([405, "BAD_USER_INPUT"]);
});

test("HEAD is refused too, without a body", async () => {
  const answer = await server.send({ method: "HEAD" });
  expect([answer.status, answer.headers.allow, answer.text]).toEqual([405, "POST", ""]);
});

test("a browser's preflight from another origin is answered, without credentials", async () => {
  const headers = {
    origin: "https://app.example",
    "access-control-request-method": "POST",
    "access-control-request-headers": "authorization,content-type",
  };
  const answer = await server.send({ method: "OPTIONS", headers });
  expect(answer.status).toBe(204);
  expect(answer.headers["access-control-allow-origin"]).toBe("*");
  expect(answer.headers["access-control-allow-methods"]).toBe("GET, POST");
  // Authorization must be listed: the asterisk does not include it.
  expect(answer.headers["access-control-allow-headers"]).toMatch(/Authorization, Content-Type.*, \*$/);
  expect(answer.headers).not.toHaveProperty("access-control-allow-credentials");
  const refused = await server.send({ headers: { origin: "https://app.example" } });
  expect(refused.headers["access-control-allow-origin"]).toBe("*");
});

test.each(["/", "/nowhere", "/graphql/", "/GraphQL", "/portal/portal.js", "/%", "/..%2f", "/graphql%00"])(
  "the unknown address %s is answered in JSON",
  async (path) => {
    const answer = await server.send({ path, method: "GET" });
    expect(refusal(answer)).toEqual([404, "NOT_FOUND"]);
  },
);

test.each([
  undefined,
  "",
  "text/plain",
  "application/graphql",
  "multipart/form-data; boundary=x",
  "application/x-www-form-urlencoded",
  "application/json; charset=utf-16",
  "application/json; charset=iso-8859-1",
  "application/jsonp",
  "application/json, text/plain",
  "/",
  ";",
])("the media type %p is refused", async (type) => {
  const headers = type === undefined ? {} : { "content-type": type };
  expect(refusal(await server.send({ headers, body: okBody }))).toEqual([415, "BAD_USER_INPUT"]);
});

test.each(["APPLICATION/JSON", "application/json;charset=UTF-8", 'application/json ; charset="utf-8"'])(
  "the media type %p is accepted",
  async (type) => {
    const answer = await server.send({ headers: { "content-type": type }, body: okBody });
    expect(answer.json).toMatchObject({ data: { ok: true } });
  },
);

const GRAPHQL = "application/graphql-response+json";
test.each([
  [undefined, "application/json"],
  ["*/*", "application/json"],
  ["application/*", "application/json"],
  ["application/json", "application/json"],
  [GRAPHQL, GRAPHQL],
  [`${GRAPHQL}, application/json;q=0.9`, GRAPHQL],
  [`application/json, ${GRAPHQL};q=0.5`, "application/json"],
  [`${GRAPHQL};q=0, */*`, "application/json"],
  [`(((, ${GRAPHQL}`, GRAPHQL],
])("Accept: %p is answered as %p", async (accept, type) => {
  const headers = accept === undefined ? json : { ...json, accept };
  const answer = await server.send({ headers, body: okBody });
  expect(answer.status).toBe(200);
  expect(answer.headers["content-type"]).toBe(`${type}; charset=utf-8`);
});

test.each([
  "(((",
  "text/html",
  "application/json;q=0",
  "application/json;q=7",
  "application/json;charset=utf-16",
  ";;;",
])("Accept: %p is refused", async (accept) => {
  expect(refusal(await server.send({ headers: { ...json, accept }, body: okBody }))).toEqual([
    406,
    "BAD_USER_INPUT",
  ]);
});

test("a refusal has the requested media type", async () => {
  const headers = { ...json, authorization: "Bearer unknown" };
  for (const [accept, type] of [
    [GRAPHQL, GRAPHQL],
    [`${GRAPHQL}, application/json;q=0.9`, GRAPHQL],
    ["application/json", "application/json"],
    ["*/*", "application/json"],
  ]) {
    const answer = await server.send({ headers: { ...headers, accept: accept! }, body: okBody });
    expect([answer.status, answer.headers["content-type"]]).toEqual([401, `${type}; charset=utf-8`]);
    expect(answer.json.errors[0].extensions.code).toBe("UNAUTHENTICATED");
    expect(answer.headers["www-authenticate"]).toMatch(/invalid_token/);
  }
});

test("an invalid document has status 200 for application/json and 400 for the newer type", async () => {
  expect((await server.graphql("{ nothing }")).status).toBe(200);
  expect((await server.graphql("{ nothing }", undefined, { accept: GRAPHQL })).status).toBe(400);
});

test("a valid request id is used, an invalid one is replaced", async () => {
  const kept = await server.graphql("{ nothing }", undefined, { "x-request-id": "my.Request_id-1" });
  expect(kept.headers["x-request-id"]).toBe("my.Request_id-1");
  expect(kept.json.errors[0].extensions.requestId).toBe("my.Request_id-1");
  for (const bad of ["a b", "x".repeat(129), "{}", "ä"]) {
    const replaced = await server.graphql("{ ok }", undefined, { "x-request-id": bad });
    expect(replaced.headers["x-request-id"]).toMatch(/^[0-9a-f-]{36}$/);
  }
});

test("response headers reveal nothing of the server, and forbid sniffing, framing and storing", async () => {
  const { headers } = await server.graphql("{ ok }");
  expect(headers).not.toHaveProperty("x-powered-by");
  expect(headers).toMatchObject({
    "cache-control": "no-store",
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "strict-transport-security": "max-age=31536000",
  });
  expect(headers["content-security-policy"]).toMatch(/default-src 'none'/);
});
