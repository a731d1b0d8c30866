import { afterAll, beforeAll, expect } from "@jest/globals";
import { isErrorCode } from "../../src/base/errors.ts";
import { type Answer, startServer, type TestServer, tokens } from "./server.ts";
import { randomFrom } from "../harness/random.ts";
import { testWithSeeds } from "../harness/seeds.ts";

let server: TestServer;
beforeAll(async () => {
  server = await startServer();
});
afterAll(async () => server[Symbol.asyncDispose]());

const good = JSON.stringify({
  query: "mutation M($input: LeadInput!) { createLead(input: $input) { id } }",
  variables: { input: { email: "a@example.com", age: 1, contact: { phone: "+15550100" } } },
  operationName: "M",
});
const pieces = [
  "{",
  "}",
  "[",
  "]",
  '"',
  ":",
  ",",
  "\\",
  "\0",
  "\\u0000",
  "null",
  "-1",
  "1e999",
  "𝒳",
  "__proto__",
  "...",
  "$",
  "@",
  "#",
];
const headerValues = [
  "",
  " ",
  ";",
  ",",
  "*/*",
  "(((",
  "a/b;q=",
  "application/json;q=1.0",
  '"',
  "=?utf-8?",
  "x".repeat(3_000),
  "\t",
  "é",
];
const headerNames = [
  "accept",
  "content-type",
  "authorization",
  "content-encoding",
  "x-request-id",
  "x-forwarded-proto",
  "origin",
  "accept-encoding",
];

function expectSane(answer: Answer): void {
  expect(answer.status).toBeLessThan(500);
  expect(answer.headers["content-type"]).toMatch(/^application\/(graphql-response\+)?json; charset=utf-8$/);
  expect(answer.headers["x-request-id"]).toMatch(/^[A-Za-z0-9._-]{1,128}$/);
  const errors = (answer.json.errors ?? []) as { extensions: { code: unknown; requestId: unknown } }[];
  for (const { extensions } of errors) {
    expect(isErrorCode(extensions.code) && extensions.code !== "INTERNAL").toBe(true);
    expect(extensions.requestId).toBe(answer.headers["x-request-id"]);
  }
}

testWithSeeds("500 damaged bodies each get a coded answer", async (seed) => {
  const random = randomFrom(seed);
  for (let run = 0; run < 500; run++) {
    let body = good;
    for (let change = 0; change <= random(4); change++) {
      const at = random(body.length);
      const piece = pieces[random(pieces.length)]!;
      body = body.slice(0, at) + piece + body.slice(at + random(6));
    }
    const headers = { "content-type": "application/json" };
    // oxlint-disable-next-line no-await-in-loop -- one at a time, so that a failure names its body
    expectSane(await server.send({ headers, body }));
  }
  expect((await server.graphql("{ ok }")).json.data).toEqual({ ok: true });
});

testWithSeeds("300 damaged sets of headers each get a coded answer", async (seed) => {
  const random = randomFrom(seed + 1);
  for (let run = 0; run < 300; run++) {
    const headers: Record<string, string> = {
      "content-type": "application/json",
      authorization: `Bearer ${tokens.good}`,
    };
    for (let change = 0; change <= random(3); change++)
      headers[headerNames[random(headerNames.length)]!] = headerValues[random(headerValues.length)]!;
    // oxlint-disable-next-line no-await-in-loop -- as above
    expectSane(await server.send({ headers, body: good }));
  }
  expect((await server.graphql("{ ok }")).json.data).toEqual({ ok: true });
});
