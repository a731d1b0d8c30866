import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Agent, request } from "node:https";
import { auditServer, type AuditResult } from "graphql-http";
import { startApi } from "../harness/api.ts";
import { startServer } from "./server.ts";

const agent = new Agent({ rejectUnauthorized: false });
afterAll(() => agent.destroy());

/** The fetch function of the audits, with the headers of a real fetch, over a self-signed certificate. */
function fetchFn(url: string, { method = "GET", headers, body }: RequestInit = {}): Promise<Response> {
  return new Promise((resolve, reject) => {
    const outgoing = request(
      url,
      { method, agent, headers: { accept: "*/*", ...(headers as Record<string, string>) } },
      (answer) => {
        const chunks: Buffer[] = [];
        answer.on("data", (chunk: Buffer) => chunks.push(chunk));
        answer.on("error", reject);
        answer.on("end", () =>
          resolve(
            new Response(Buffer.concat(chunks), {
              status: answer.statusCode!,
              headers: answer.headers as Record<string, string>,
            }),
          ),
        );
      },
    );
    outgoing.on("error", reject);
    outgoing.end(body as string | undefined);
  });
}

const servers = {
  "the transport over a schema in memory": async () => {
    const server = await startServer();
    return { url: `${server.url}/graphql`, stop: async () => server[Symbol.asyncDispose]() };
  },
  "the API on its database": async () => startApi(),
};

describe.each(Object.entries(servers))("%s", (_name, start) => {
  let server: { url: string; stop(): Promise<void> };
  let results: AuditResult[];

  beforeAll(async () => {
    server = await start();
    results = await auditServer({ url: server.url, fetchFn });
  });
  afterAll(async () => server.stop());

  const named = (status: AuditResult["status"]) =>
    results.filter((result) => result.status === status).map((result) => result.name);

  test("the public audit suite of GraphQL over HTTP finds no error and no warning", () => {
    expect(named("error")).toEqual([]);
    expect(named("warn")).toEqual([]);
    expect(named("ok").length).toBeGreaterThanOrEqual(58);
  });

  test("its only notices concern GET, which is not served", () => {
    expect(named("notice")).toHaveLength(3);
    for (const name of named("notice")) expect(name).toMatch(/GET/);
  });
});
