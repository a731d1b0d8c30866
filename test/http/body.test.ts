import { once } from "node:events";
import { request as httpsRequest } from "node:https";
import { brotliCompressSync, gzipSync } from "node:zlib";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { bodyLimits } from "../../src/http/body.ts";
import { requestBodies } from "../../src/admission/semaphores.ts";
import { partyOf } from "../../src/admission/party.ts";
import { startServer, type TestServer, tokens } from "./server.ts";
import { until } from "../harness/until.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server[Symbol.asyncDispose]());

const json = { "content-type": "application/json" };
const signedIn = { ...json, authorization: `Bearer ${tokens.good}` };
const post = (body: string | Uint8Array, headers: Record<string, string> = json) =>
  server.send({ headers, body });
/** A valid body of this number of bytes. */
const bodyOf = (size: number) => {
  const empty = JSON.stringify({ query: "query($t: String) { echo(text: $t) }", variables: { t: "" } });
  return empty.replace('"t":""', `"t":"${"x".repeat(size - empty.length)}"`);
};

const nested = (open: string, close: string, times: number) => open.repeat(times) + close.repeat(times);

test.each([
  ["nothing", ""],
  ["blanks", "   "],
  ["half an object", '{"query":'],
  ["no JSON", "{ ok }"],
  ["null", "null"],
  ["a number", "1"],
  ["a string", '"{ ok }"'],
  ["a batch", '[{"query":"{ ok }"}]'],
  ["an empty batch", "[]"],
  ["no query", "{}"],
  ["query null", '{"query":null}'],
  ["query no string", '{"query":{"ok":1}}'],
  ["variables a string", '{"query":"{ ok }","variables":"{}"}'],
  ["variables an array", '{"query":"{ ok }","variables":[]}'],
  ["variables a number", '{"query":"{ ok }","variables":0}'],
  ["operationName a number", '{"query":"{ ok }","operationName":1}'],
  ["extensions a string", '{"query":"{ ok }","extensions":"x"}'],
  ["NUL in a variable", '{"query":"{ ok }","variables":{"a":"\\u0000"}}'],
  ["NUL in a nested variable", '{"query":"{ ok }","variables":{"a":[{"b":"x\\u0000"}]}}'],
  ["NUL in a name", '{"query":"{ ok }","variables":{"a\\u0000":1}}'],
  ["NUL in the document", '{"query":"{ echo(text: \\"\\u0000\\") }"}'],
  ["a bare NUL byte", '{"query":"{ ok }"\0}'],
  ["10,000 nested arrays", `{"query":"{ ok }","variables":{"a":${nested("[", "]", 10_000)}}}`],
  [
    "10,000 nested objects",
    `{"query":"{ ok }","variables":${nested('{"a":', "}", 10_000).replace(":}", ":1}")}}`,
  ],
])("a body with %s is refused with 400", async (_name, body) => {
  const answer = await post(body);
  expect(answer.status).toBe(400);
  expect(answer.json.errors[0].extensions).toMatchObject({
    code: "BAD_USER_INPUT",
    requestId: answer.headers["x-request-id"],
  });
});

test("an invalid property of the body is named", async () => {
  const answer = await post('{"query":"{ ok }","variables":{"a":{"b":"\\u0000"}}}');
  expect(answer.json.errors[0].extensions.field).toBe("variables.a.b");
});

test.each([
  ["invalid UTF-8", Buffer.from('{"query":"{ ok }","operationName":"\xff\xfe"}', "latin1")],
  ["UTF-16", Buffer.from('{"query":"{ ok }"}', "utf16le")],
  ["a half surrogate in bytes", Buffer.from([0x22, 0xed, 0xa0, 0x80, 0x22])],
])("a body in %s is refused", async (_name, body) => {
  expect((await post(body)).status).toBe(400);
});

test("a byte order mark, and empty or unknown properties are accepted", async () => {
  for (const body of [
    '\uFEFF{"query":"{ ok }"}',
    '{"query":"{ ok }","variables":null,"operationName":null,"extensions":null}',
    '{"query":"{ ok }","variables":{},"extensions":{},"__proto__":{"query":1},"more":[1]}',
  ])
    expect((await post(body)).json).toMatchObject({ data: { ok: true } });
});

test("the limit is exactly 1 MB for visitors", async () => {
  expect((await post(bodyOf(bodyLimits.anonymous))).status).toBe(200);
  const large = await post(bodyOf(bodyLimits.anonymous + 1));
  expect(large.status).toBe(413);
  expect(large.json.errors[0].extensions).toMatchObject({ code: "PAYLOAD_TOO_LARGE", limit: 1_000_000 });
  expect(large.json.errors[0].message).toBe("The body is over 1 MB.");
  expect((await post(bodyOf(bodyLimits.anonymous + 1), signedIn)).status).toBe(200);
});

test("the limit is exactly 10 MB for signed-in viewers", async () => {
  expect((await post(bodyOf(bodyLimits.signedIn), signedIn)).status).toBe(200);
  const larger = await post(bodyOf(bodyLimits.signedIn + 1), signedIn);
  expect(larger.status).toBe(413);
  expect(larger.json.errors[0].extensions).toMatchObject({ code: "PAYLOAD_TOO_LARGE", limit: 10_000_000 });
});

test("an invalid token does not permit the larger limit", async () => {
  const answer = await post(bodyOf(2_000_000), { ...json, authorization: "Bearer wrong" });
  expect(answer.status).toBe(401);
});

test("the limit also applies to a body without a length", async () => {
  const answer = await server.send({
    headers: { ...json, "transfer-encoding": "chunked" },
    body: bodyOf(3_000_000),
  });
  expect(answer.status).toBe(413);
});

test("compressed bodies are decompressed, and their decompressed size counts", async () => {
  const small = Buffer.from('{"query":"{ ok }"}');
  for (const [encoding, bytes] of [
    ["gzip", gzipSync(small)],
    ["br", brotliCompressSync(small)],
    ["GZIP", gzipSync(small)],
  ] as const)
    expect((await post(bytes, { ...json, "content-encoding": encoding })).json).toMatchObject({
      data: { ok: true },
    });
  const bomb = gzipSync(Buffer.alloc(200_000_000, 0x20), { level: 9 });
  expect(bomb.length).toBeLessThan(bodyLimits.anonymous);
  expect((await post(bomb, { ...json, "content-encoding": "gzip" })).status).toBe(413);
});

test.each([
  ["compress", "x", 415],
  ["zstd", "this is no zstd", 400],
  ["gzip, gzip", "x", 415],
  ["gzip", "this is no gzip", 400],
])("content encoding %p is refused", async (encoding, body, status) => {
  const answer = await post(body, { ...json, "content-encoding": encoding });
  expect(answer.status).toBe(status);
  expect(answer.json.errors[0].extensions.code).toBe("BAD_USER_INPUT");
  expect(answer.json.errors[0].message).toBe(
    status === 415
      ? "Content-Encoding may be gzip, deflate, br or zstd, or be omitted."
      : "The request body could not be read completely.",
  );
});

test("a body with a refused encoding takes nothing of the share of bodies; one with an empty encoding takes its announced length", async () => {
  const everything = await requestBodies.acquire(partyOf(null, "127.0.0.1"), { weight: 24_000_000 });
  try {
    for (const encoding of ["compress", "xgzip", "gzipped"])
      expect((await post(bodyOf(500_000), { ...json, "content-encoding": encoding })).status).toBe(415);
    // The announced length is one byte too large.
    expect((await post(bodyOf(bodyLimits.anonymous + 1))).status).toBe(413);
    expect((await post(bodyOf(1_000), { ...json, "content-encoding": "" })).status).toBe(200);
    const waits = [
      post(bodyOf(500_000), { ...json, "content-encoding": "" }),
      post(bodyOf(bodyLimits.anonymous)),
    ];
    await until(() => requestBodies.numbers.waiting === waits.length);
    everything();
    for (const { status } of await Promise.all(waits)) expect(status).toBe(200);
  } finally {
    everything();
  }
});

test("a client that disconnects during the body leaves a log line, and the server continues", async () => {
  const request = httpsRequest({
    host: "127.0.0.1",
    port: server.port,
    path: "/graphql",
    method: "POST",
    rejectUnauthorized: false,
    agent: false,
    headers: { ...json, "content-length": 1000, "x-request-id": "gone" },
  });
  request.on("error", () => {});
  request.flushHeaders();
  const [socket] = await once(request, "socket");
  await once(socket, "secureConnect");
  await new Promise<void>((resolve) => request.write('{"query":', () => resolve()));
  request.destroy();
  const finished = () => server.log.some((line) => line.requestId === "gone" && line.msg === "request");
  // Requests show that the server works, and give the log line time to appear.
  await until(async () => {
    expect((await server.graphql("{ ok }")).status).toBe(200);
    return finished();
  });
  expect(server.log.find((line) => line.requestId === "gone" && line.msg === "request")).toMatchObject({
    aborted: true,
  });
});
