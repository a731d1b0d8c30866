/** Refusals: status, headers, language and log line, and the handling of the rest of the request. */
import { once } from "node:events";
import { createServer, request as httpRequest, type IncomingMessage } from "node:http";
import type { AddressInfo } from "node:net";
import express from "express";
import { expect, test } from "@jest/globals";
import { CodedError, internalError } from "../../src/base/errors.ts";
import { notFound, refuse } from "../../src/http/refuse.ts";
import { beginRequest, type RequestState } from "../../src/http/requestState.ts";
import type { LanguageOfUser } from "../../src/http/viewerLanguage.ts";
import { until } from "../harness/until.ts";

interface Asked {
  headers?: Record<string, string>;
  claims?: RequestState["claims"];
  languageOfUser?: LanguageOfUser;
  /** Actions before the error, such as starting a response. */
  before?: (response: express.Response, state: RequestState) => void | Promise<void>;
  /** Announced length of a body, which is sent after the refusal. */
  announced?: number;
}

/**
 * An application that fails with `error`, or has no route without one; returns the outcome of one request to
 * it.
 */
async function refused(error: unknown, sent: Asked = {}) {
  const logged: unknown[][] = [];
  const state = {
    id: "r1",
    errorCodes: new Set<string>(),
    constraintMessages: new Map(),
    claims: sent.claims,
    isDrained: false,
    log: { error: (...given: unknown[]) => void logged.push(given) },
  } as unknown as RequestState;
  let received: IncomingMessage | undefined;
  const app = express()
    .use(async (request, response, next) => {
      received = request;
      beginRequest(request, state);
      await sent.before?.(response, state);
      next(error);
    })
    .use(notFound)
    .use(refuse(sent.languageOfUser));
  const server = createServer(app).listen(0, "127.0.0.1");
  await once(server, "listening");
  const { announced, headers } = sent;
  const request = httpRequest({
    host: "127.0.0.1",
    port: (server.address() as AddressInfo).port,
    path: "/nowhere",
    agent: false,
    method: announced === undefined ? "GET" : "POST",
    headers: {
      connection: "keep-alive",
      ...headers,
      ...(announced !== undefined && { "content-length": announced }),
    },
  });
  if (announced === undefined) request.end();
  else request.flushHeaders();
  try {
    const [response] = (await once(request, "response")) as [IncomingMessage];
    let text = "";
    let broken: unknown;
    try {
      for await (const chunk of response) text += String(chunk);
    } catch (failure) {
      broken = failure;
    }
    // The body is either read to its end, or its connection is closed before that.
    if (announced !== undefined) {
      request.end(Buffer.alloc(announced));
      await until(() => received!.complete || received!.socket.destroyed);
    }
    const readOpenTables = received!.complete;
    const json = /json/.test(response.headers["content-type"] ?? "") ? JSON.parse(text) : undefined;
    return {
      status: response.statusCode,
      headers: response.headers,
      text,
      json,
      broken,
      readOpenTables,
      logged,
      state,
    };
  } finally {
    request.on("error", () => {}).destroy();
    server.closeAllConnections();
    server.close();
  }
}

test("an unknown address is refused with one sentence, and not logged as an error", async () => {
  const { status, headers, json, logged, state } = await refused(undefined);
  expect(status).toBe(404);
  expect(headers["content-type"]).toBe("application/json; charset=utf-8");
  expect(json.errors).toEqual([
    {
      message: "There is nothing at this path. Send operations to POST /graphql.",
      extensions: expect.objectContaining({ code: "NOT_FOUND", requestId: "r1" }),
    },
  ]);
  expect([...state.errorCodes]).toEqual(["NOT_FOUND"]);
  expect(logged).toEqual([]);
});

test.each([400, 413, 499])("refusals of the HTTP layer with %d are errors of the client", async (status) => {
  const answer = await refused(Object.assign(new Error("secret"), { status }));
  expect(answer.status).toBe(status);
  expect(answer.json.errors[0]).toMatchObject({
    message: "The request is malformed.",
    extensions: { code: "BAD_USER_INPUT" },
  });
  expect(answer.logged).toEqual([]);
});

test.each<[string, unknown]>([
  ["399", { status: 399 }],
  ["500", { status: 500 }],
  ["a text", { status: "400" }],
  ["none", {}],
])("any other failure is internal, and logged with its cause: status %s", async (_name, more) => {
  const answer = await refused(Object.assign(new TypeError("secret"), more));
  expect([answer.status, answer.json.errors[0].extensions.code]).toEqual([500, "INTERNAL"]);
  expect(answer.text).not.toMatch(/secret/);
  expect(answer.logged).toEqual([
    [
      { event: "http.failed", err: expect.objectContaining({ name: "TypeError", message: "secret" }) },
      "The request failed.",
    ],
  ]);
  expect([...answer.state.errorCodes]).toEqual(["INTERNAL"]);
});

test("a coded error keeps its own status, also one of the client", async () => {
  const answer = await refused(
    new CodedError("CONFLICT", "There is one.", { existingId: "1" }, { status: 418 }),
  );
  expect(answer.status).toBe(418);
  expect(answer.json.errors[0]).toMatchObject({
    message: "There is one.",
    extensions: { code: "CONFLICT", existingId: "1", requestId: "r1" },
  });
  expect(answer.logged).toEqual([]);
});

test("UNAVAILABLE has the time to retry, and is logged with its cause, or itself", async () => {
  const gone = () => new CodedError("UNAVAILABLE", "Come again.", { retryAfterSeconds: 1.5 });
  const answer = await refused(gone());
  expect([answer.status, answer.headers["retry-after"]]).toEqual([503, "2"]);
  expect(answer.logged).toEqual([
    [
      { event: "http.failed", err: expect.objectContaining({ message: "CodedError: Come again." }) },
      "The request failed.",
    ],
  ]);
  const { logged } = await refused(internalError(new RangeError("deep")));
  expect(logged).toEqual([
    [
      { event: "http.failed", err: expect.objectContaining({ name: "RangeError", message: "deep" }) },
      "The request failed.",
    ],
  ]);
});

test("UNAUTHENTICATED has a challenge, and whether a token was invalid; other errors have none", async () => {
  const unknown = new CodedError("UNAUTHENTICATED", "Sign in first.");
  expect((await refused(unknown)).headers["www-authenticate"]).toBe('Bearer realm="plat"');
  const { status, headers } = await refused(unknown, { headers: { authorization: "Bearer old" } });
  expect([status, headers["www-authenticate"]]).toEqual([401, 'Bearer realm="plat", error="invalid_token"']);
  expect((await refused(new CodedError("FORBIDDEN", "No."))).headers).not.toHaveProperty("www-authenticate");
});

test("a privilege error of the database is UNAUTHENTICATED for visitors and FORBIDDEN for viewers", async () => {
  const denied = () => Object.assign(new Error("permission denied for table t"), { code: "42501" });
  const codes = [];
  for (const claims of [undefined, { userId: null }, { userId: "user-1" }])
    codes.push((await refused(denied(), { claims })).json.errors[0].extensions.code);
  expect(codes).toEqual(["UNAUTHENTICATED", "UNAUTHENTICATED", "FORBIDDEN"]);
});

test("a response that has begun is aborted rather than mixed with a refusal", async () => {
  const answer = await refused(new CodedError("CONFLICT", "There is one."), {
    before: (response) => new Promise((resolve) => response.write("begun", () => resolve())),
  });
  expect(answer.status).toBe(200);
  expect(answer.text).toBe("begun");
  expect(answer.broken).toMatchObject({ code: "ECONNRESET" });
  expect([...answer.state.errorCodes]).toEqual(["CONFLICT"]);
});

test("a refusal is not compressed, even if the response was to be", async () => {
  const answer = await refused(new CodedError("CONFLICT", "There is one."), {
    before: (response) => void response.setHeader("Content-Encoding", "gzip"),
  });
  expect(answer.headers).not.toHaveProperty("content-encoding");
  expect(answer.json.errors[0].message).toBe("There is one.");
});

test("of a large body nothing more is read once its request is refused, unless it is to be drained", async () => {
  const error = new CodedError("CONFLICT", "There is one.");
  const left = await refused(error, { announced: 1_000_000 });
  expect([left.status, left.readOpenTables]).toEqual([409, false]);
  const drained = await refused(error, {
    announced: 1_000_000,
    before: (_response, state) => void (state.isDrained = true),
  });
  expect([drained.status, drained.readOpenTables]).toEqual([409, true]);
});

test("a refusal is in the language that the request accepts, or that the viewer has chosen", async () => {
  const message = async (sent: Asked) => (await refused(undefined, sent)).json.errors[0].message as string;
  const english = await message({});
  const german = await message({ headers: { "accept-language": "de" } });
  expect(german).not.toBe(english);
  const users: string[] = [];
  const languageOfUser: LanguageOfUser = async (userId) => {
    users.push(userId);
    return "de";
  };
  expect(await message({ languageOfUser, claims: { userId: "user-1" } })).toBe(german);
  expect(await message({ languageOfUser, claims: { userId: null } })).toBe(english);
  expect(users).toEqual(["user-1"]);
});
