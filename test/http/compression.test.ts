import { brotliDecompressSync, gunzipSync } from "node:zlib";
import { request as httpsRequest } from "node:https";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { getIntrospectionQuery } from "postgraphile/graphql";
import { compressions } from "../../src/admission/semaphores.ts";
import { partyOf } from "../../src/admission/party.ts";
import { startServer, type TestServer, tokens } from "./server.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer({ production: true, explorer: false });
});
afterAll(async () => server[Symbol.asyncDispose]());

interface Raw {
  encoding: string | undefined;
  vary: string | undefined;
  bytes: Buffer;
}

/** Sends a document and returns the bytes of the response as transmitted. */
function ask(query: string, headers: Record<string, string>, variables?: unknown): Promise<Raw> {
  return new Promise((resolve, reject) => {
    const outgoing = httpsRequest(
      `${server.url}/graphql`,
      {
        method: "POST",
        rejectUnauthorized: false,
        agent: false,
        headers: { "content-type": "application/json", ...headers },
      },
      (response) => {
        const chunks: Buffer[] = [];
        response.on("data", (chunk: Buffer) => chunks.push(chunk));
        response.on("end", () =>
          resolve({
            encoding: response.headers["content-encoding"],
            vary: response.headers.vary,
            bytes: Buffer.concat(chunks),
          }),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(JSON.stringify({ query, variables }));
  });
}

const signedIn = { authorization: `Bearer ${tokens.good}` };
const browser = { "accept-encoding": "gzip, deflate, br, zstd" };
const schema = getIntrospectionQuery();
const echo = "query ($text: String) { echo(text: $text) }";
const long = { text: "a text with nothing new in it ".repeat(1_000) };

test("the schema is compressed with the best encoding that the client accepts", async () => {
  const plain = await ask(schema, signedIn);
  expect([plain.encoding, plain.vary]).toEqual([undefined, "Accept-Encoding"]);
  const br = await ask(schema, { ...signedIn, ...browser });
  const gzip = await ask(schema, { ...signedIn, "accept-encoding": "gzip, br;q=0" });
  expect([br.encoding, gzip.encoding]).toEqual(["br", "gzip"]);
  expect(JSON.parse(brotliDecompressSync(br.bytes).toString())).toEqual(JSON.parse(plain.bytes.toString()));
  expect(JSON.parse(gunzipSync(gzip.bytes).toString())).toEqual(JSON.parse(plain.bytes.toString()));
  expect(br.bytes.length * 5).toBeLessThan(plain.bytes.length);
  for (const none of ["identity", "", "*;q=0", "compress"])
    expect((await ask(schema, { ...signedIn, "accept-encoding": none })).encoding).toBeUndefined();
});

test("compresses responses to visitors only", async () => {
  const visitor = await ask(echo, browser, long);
  expect(visitor.encoding).toBe("br");
  expect(JSON.parse(brotliDecompressSync(visitor.bytes).toString()).data).toEqual({ echo: long.text });
  const own = await ask(echo, { ...signedIn, ...browser }, long);
  expect([own.encoding, own.vary]).toEqual([undefined, undefined]);
  expect(own.bytes.length).toBeGreaterThan(long.text.length);
  const changed = await ask("mutation ($input: LeadInput!) { createLead(input: $input) { name } }", browser, {
    input: { email: "ada@example.com" },
  });
  expect([changed.encoding, changed.vary]).toEqual([undefined, undefined]);
});

test("does not compress short responses", async () => {
  expect((await ask("{ ok }", browser)).encoding).toBeUndefined();
});

test("while other responses have been in compression for some time, the text is sent uncompressed", async () => {
  const release = await compressions.acquire(partyOf("somebody", undefined));
  try {
    const answer = await ask(echo, browser, long);
    expect([answer.encoding, JSON.parse(answer.bytes.toString()).data]).toEqual([
      undefined,
      { echo: long.text },
    ]);
  } finally {
    release();
  }
});
