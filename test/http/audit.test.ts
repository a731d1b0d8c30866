import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { auditServer, type AuditResult } from "graphql-http";
import { startServer, type TestServer } from "./server.ts";

let server: TestServer;
let results: AuditResult[];

/** The audits' fetch, with the header that every fetch sends by itself, over a certificate nobody signed. */
async function fetchFn(url: string, init: RequestInit = {}): Promise<Response> {
  const headers = { accept: "*/*", ...(init.headers as Record<string, string>) };
  const { pathname, search } = new URL(url);
  const answer = await server.send({
    path: pathname + search,
    method: init.method ?? "GET",
    headers,
    body: init.body as string | undefined,
  });
  return new Response(answer.text, {
    status: answer.status,
    headers: answer.headers as Record<string, string>,
  });
}

beforeAll(async () => {
  server = await startServer();
  results = await auditServer({ url: `${server.url}/graphql`, fetchFn });
});
afterAll(async () => server[Symbol.asyncDispose]());

const named = (status: AuditResult["status"]) =>
  results.filter((result) => result.status === status).map((result) => result.name);

test("the public audit suite of GraphQL over HTTP finds no error and no warning", () => {
  expect(named("error")).toEqual([]);
  expect(named("warn")).toEqual([]);
  expect(named("ok").length).toBeGreaterThanOrEqual(58);
});

test("its only notices are about GET, which is not served", () => {
  expect(named("notice")).toHaveLength(3);
  for (const name of named("notice")) expect(name).toMatch(/GET/);
});
