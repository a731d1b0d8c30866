/** All routes: their methods, response headers, metrics and log lines. */
import { request as httpRequest } from "node:http";
import { expect, test } from "@jest/globals";
import type { RequestHandler } from "express";
import pino from "pino";
import { answerText, WrittenJson } from "../../src/http/answerText.ts";
import { createMetrics } from "../../src/http/metrics.ts";
import { openMonitoring, startMonitoring } from "../../src/http/monitoring.ts";
import { claimsOf, findRequestState, requestState } from "../../src/http/requestState.ts";
import { Readiness } from "../../src/monitoring/readiness.ts";
import { until } from "../harness/until.ts";
import { startServer } from "./server.ts";

const says =
  (name: string): RequestHandler<any> =>
  (_request, response) =>
    void response.json({ name });
const handlers = {
  filePage: says("file"),
  pages: { "/healthz": says("page") },
  trackers: says("tracker"),
  unsubscribe: says("unsubscribe"),
  confirm: says("confirm"),
  stopEmailChange: says("stopEmailChange"),
  calendars: says("calendar"),
  consent: says("consent"),
  paymentsWebhook: says("payments"),
  messagesWebhook: says("messages"),
  signing: says("signing"),
  signingWebhook: says("signingEvents"),
};
const routes: [path: string, name: string, methods: string[]][] = [
  ["/files/k/n", "file", ["GET", "HEAD"]],
  ["/healthz", "page", ["GET", "HEAD"]],
  ["/t/k", "tracker", ["GET", "HEAD"]],
  ["/unsubscribe/k", "unsubscribe", ["GET", "HEAD", "POST"]],
  ["/confirm/k", "confirm", ["GET", "HEAD", "POST"]],
  ["/stop-email-change/k", "stopEmailChange", ["GET", "HEAD", "POST"]],
  ["/calendars/k.ics", "calendar", ["GET", "HEAD"]],
  ["/integrations/callback", "consent", ["GET", "POST"]],
  ["/webhooks/payments", "payments", ["POST"]],
  ["/webhooks/messages", "messages", ["POST"]],
  ["/sign/k", "signing", ["GET", "HEAD", "POST"]],
  ["/webhooks/signing/k", "signingEvents", ["POST"]],
];

test.each(routes)("%s accepts its methods and no others", async (path, name, methods) => {
  await using server = await startServer(handlers);
  for (const method of methods) {
    const answer = await server.send({ method, path });
    expect([method, answer.status, answer.text]).toEqual([
      method,
      200,
      method === "HEAD" ? "" : JSON.stringify({ name }),
    ]);
  }
  const allow = methods.join(", ");
  for (const method of ["GET", "POST", "PUT", "DELETE", "OPTIONS"].filter(
    (other) => !methods.includes(other),
  )) {
    const answer = await server.send({ method, path });
    expect([method, answer.status, answer.headers.allow]).toEqual([method, 405, allow]);
    expect(answer.json.errors[0]).toMatchObject({
      message: `This path only accepts ${allow}.`,
      extensions: { code: "BAD_USER_INPUT" },
    });
  }
  // Paths are case-sensitive, also in the slash at the end.
  for (const other of [path.replace(/[a-z]/, (letter) => letter.toUpperCase()), `${path}/`])
    expect([other, (await server.send({ method: methods[0]!, path: other })).status]).toEqual([other, 404]);
});

test("routes of disabled functions do not exist", async () => {
  await using server = await startServer({ explorer: false });
  for (const [path, , [method]] of routes)
    expect([path, (await server.send({ method: method!, path })).status]).toEqual([path, 404]);
});

test("every response has the headers that keep browsers from interpreting it differently", async () => {
  await using server = await startServer();
  for (const answer of [
    await server.graphql("{ ok }"),
    await server.send({ method: "GET", path: "/nothing" }),
  ]) {
    expect(answer.headers).toMatchObject({
      "cache-control": "no-store",
      "content-security-policy": "default-src 'none'; frame-ancestors 'none'",
      "cross-origin-opener-policy": "same-origin",
      "referrer-policy": "no-referrer",
      "x-content-type-options": "nosniff",
      "x-frame-options": "DENY",
      "strict-transport-security": "max-age=31536000",
    });
    for (const name of ["x-powered-by", "etag"]) expect(answer.headers).not.toHaveProperty(name);
  }
});

test("pages of any origin may send requests, with the required headers; other OPTIONS are refused", async () => {
  await using server = await startServer();
  const preflight = { origin: "https://a.example", "access-control-request-method": "POST" };
  const answer = await server.send({ method: "OPTIONS", headers: preflight });
  expect([answer.status, answer.text]).toEqual([204, ""]);
  expect(answer.headers).toMatchObject({
    "access-control-allow-origin": "*",
    "access-control-allow-methods": "GET, POST",
    "access-control-allow-headers":
      "Authorization, Content-Type, Idempotency-Key, If-None-Match, Last-Event-ID, Plat-Position, X-Request-Id, X-Requested-With, GraphQL-Preflight, Apollo-Require-Preflight, X-Apollo-Operation-Name, Apollographql-Client-Name, Apollographql-Client-Version, GraphQL-Client-Name, GraphQL-Client-Version, Traceparent, Tracestate, Baggage, Sentry-Trace, *",
    "access-control-max-age": "86400",
    "access-control-expose-headers":
      "X-Request-Id, Plat-Position, ETag, Retry-After, WWW-Authenticate, Idempotency-Replayed",
  });
  for (const name of Object.keys(preflight)) {
    const headers = Object.fromEntries(Object.entries(preflight).filter(([other]) => other !== name));
    const refused = await server.send({ method: "OPTIONS", headers });
    expect([refused.status, refused.headers.allow, refused.headers["access-control-max-age"]]).toEqual([
      405,
      "POST",
      undefined,
    ]);
  }
  expect((await server.graphql("{ ok }")).headers["access-control-allow-origin"]).toBe("*");
});

test("a request id of the client is used if it has the right format", async () => {
  await using server = await startServer();
  const idOf = async (id: string) =>
    (await server.graphql("{ ok }", {}, { "x-request-id": id })).headers["x-request-id"];
  for (const id of ["abc.DEF_1-2", "a".repeat(128)]) expect(await idOf(id)).toBe(id);
  for (const id of ["a".repeat(129), "a b", "a,b"])
    expect(await idOf(id)).toMatch(/^[0-9a-f]{8}-[0-9a-f-]{27}$/);
});

test("a log line contains the request and its outcome, without possible secrets", async () => {
  await using server = await startServer(handlers);
  await server.graphql("query Mine { ok }", {}, { authorization: "Bearer good-token", "x-request-id": "r1" });
  await server.graphql("{ nothing }", {}, { "x-request-id": "r2" });
  await server.send({
    method: "GET",
    path: "/calendars/secret.ics?x=secret",
    headers: { "x-request-id": "r3" },
  });
  await server.send({ method: "GET", path: "/t/k?token=secret", headers: { "x-request-id": "r4" } });
  const links = ["confirm", "sign", "stop-email-change", "unsubscribe"];
  for (const link of links)
    await server.send({ method: "GET", path: `/${link}/secret`, headers: { "x-request-id": link } });
  const lines = await until(
    () => server.log.filter(({ msg }) => msg === "request"),
    ({ length }) => length === 8,
  );
  const of = (id: string) => lines.find(({ requestId }) => requestId === id)!;
  expect(of("r1")).toMatchObject({
    level: 30,
    method: "POST",
    path: "/graphql",
    status: 200,
    userId: "user-1",
    operationType: "query",
  });
  expect(of("r1").durationMs).toBeGreaterThan(0);
  expect(of("r1").durationMs).toBeLessThan(60_000);
  for (const name of ["errorCodes", "aborted"]) expect(of("r1")).not.toHaveProperty(name);
  expect(of("r2").errorCodes).toEqual(["BAD_USER_INPUT"]);
  expect(of("r2")).not.toHaveProperty("userId");
  expect(of("r3").path).toBe("/calendars/…");
  expect(of("r4").path).toBe("/t/k");
  expect(links.map((link) => of(link).path)).toEqual(links.map((link) => `/${link}/…`));
  expect(JSON.stringify(lines)).not.toMatch(/secret|good-token/);
});

test("a client that disconnects before the response is logged", async () => {
  const arrived = Promise.withResolvers<void>();
  await using server = await startServer({ pages: { "/slow": () => arrived.resolve() } });
  const gone = new AbortController();
  const asking = server.send({ method: "GET", path: "/slow", signal: gone.signal }).catch(() => {});
  await arrived.promise;
  gone.abort();
  await asking;
  const [line] = await until(
    () => server.log.filter(({ msg }) => msg === "request"),
    ({ length }) => length === 1,
  );
  expect(line).toMatchObject({ path: "/slow", aborted: true });
});

test("requests are counted by route, method and status, which have few values", async () => {
  const metrics = createMetrics();
  await using server = await startServer({
    ...handlers,
    metrics,
    numbers: () => ({ pools: { api: { total: 3, idle: 2, waiting: 1 } } }),
  });
  await server.graphql("{ ok }");
  await server.send({ method: "GET", path: "/healthz" });
  await server.send({ method: "HEAD", path: "/" });
  await server.send({ method: "OPTIONS", path: "/graphql" });
  await server.send({ method: "DELETE", path: "/somewhere" });
  const text = await until(
    async () => (await metrics.render()).text,
    (page) => page.includes('method="other"'),
  );
  const samples = text.split("\n").filter((line) => line.startsWith("plat_"));
  expect(samples).toEqual(
    expect.arrayContaining([
      'plat_http_requests_total{route="/graphql",method="POST",status="200"} 1',
      'plat_http_requests_total{route="/healthz",method="GET",status="200"} 1',
      'plat_http_requests_total{route="/",method="HEAD",status="200"} 1',
      'plat_http_requests_total{route="/graphql",method="OPTIONS",status="405"} 1',
      'plat_http_requests_total{route="other",method="other",status="404"} 1',
      'plat_errors_total{code="BAD_USER_INPUT"} 1',
      'plat_errors_total{code="NOT_FOUND"} 1',
      'plat_pool_connections{pool="api",state="total"} 3',
      'plat_pool_connections{pool="api",state="idle"} 2',
      'plat_pool_connections{pool="api",state="waiting"} 1',
      'plat_http_request_duration_seconds_count{route="/graphql"} 2',
    ]),
  );
  expect(samples.filter((line) => /_bucket\{le="[^"]+",route="\/graphql"\}/.test(line))).toHaveLength(13);
  for (const [name, help] of [
    ["plat_http_requests_total", "Requests by route, method and status"],
    ["plat_http_request_duration_seconds", "From the first middleware to the end of the answer"],
    ["plat_errors_total", "Answers that carry an error, by code"],
    ["plat_pool_connections", "Connections of the pools, and callers that wait for one"],
  ])
    expect(text).toContain(`# HELP ${name} ${help}\n`);
  const [, sum] = /duration_seconds_sum\{route="\/graphql"\} ([\d.e-]+)/.exec(text)!;
  expect(Number(sum)).toBeGreaterThan(0);
  expect(Number(sum)).toBeLessThan(60);
});

test("the monitoring address documents its paths, and is not cached", async () => {
  const readiness = new Readiness();
  const metrics = createMetrics();
  const opened = await startMonitoring({ host: "127.0.0.1", port: 0, metrics, readiness });
  const ask = (path: string, method = "GET") =>
    new Promise<[number, Record<string, unknown>, string]>((resolve, reject) => {
      httpRequest({ host: "127.0.0.1", port: opened.port, path, method, agent: false }, (response) => {
        let text = "";
        response.on("data", (chunk) => (text += chunk));
        response.on("end", () => resolve([response.statusCode!, response.headers, text]));
      })
        .on("error", reject)
        .end();
    });
  try {
    const kept = { "cache-control": "no-store", "x-content-type-options": "nosniff" };
    const json = { ...kept, "content-type": "application/json; charset=utf-8" };
    expect(await ask("/healthz")).toEqual([200, expect.objectContaining(json), '{"status":"alive"}']);
    expect(await ask("/healthz", "HEAD")).toEqual([200, expect.objectContaining(json), ""]);
    expect(await ask("/readyz")).toEqual([
      200,
      expect.objectContaining(json),
      '{"status":"ready","checks":{}}',
    ]);
    expect(await ask("/nothing")).toEqual([404, expect.objectContaining(json), '{"status":"not found"}']);
    expect(await ask("/healthz", "POST")).toEqual([
      405,
      expect.objectContaining({ ...json, allow: "GET, HEAD" }),
      '{"status":"GET only"}',
    ]);
    expect((await ask("/nothing"))[1]).not.toHaveProperty("allow");
    const [status, headers] = await ask("/metrics?x=1");
    expect([status, headers["content-type"]]).toEqual([200, (await metrics.render()).contentType]);
    readiness.add("part", () => false);
    expect(await ask("/readyz")).toEqual([
      503,
      expect.objectContaining(json),
      '{"status":"unavailable","checks":{"part":false}}',
    ]);
  } finally {
    await opened.close();
  }
});

test("it is opened in addition to the service's own, and logged", async () => {
  const lines: Record<string, unknown>[] = [];
  const log = pino({}, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const given = { metrics: createMetrics(), readiness: new Readiness(), log };
  const any = { host: "127.0.0.1", port: 0 };
  const free = await startMonitoring({ ...any, ...given });
  const { port } = free;
  await free.close();
  for (const [mode, at] of [
    ["all", port - 1],
    ["worker", port - 2],
  ] as const) {
    const opened = await openMonitoring({ monitoring: undefined, port: at, mode } as never, given);
    expect(lines.at(-1)).toMatchObject({
      level: 30,
      event: "monitoring.open",
      host: "127.0.0.1",
      port,
      msg: "Metrics and probes are served.",
    });
    const failure = await openMonitoring(
      { monitoring: { host: "127.0.0.1", port }, port, mode } as never,
      given,
    ).catch((error) => error);
    expect(failure.message).toMatch(
      new RegExp(`^MONITORING: cannot listen on 127\\.0\\.0\\.1:${port}: .*EADDRINUSE`),
    );
    expect(failure.cause.code).toBe("EADDRINUSE");
    expect(await openMonitoring({ monitoring: undefined, port: at, mode } as never, given)).toBeUndefined();
    expect(lines.at(-1)).toMatchObject({
      level: 40,
      event: "monitoring.taken",
      host: "127.0.0.1",
      port,
      msg: "The address for metrics and probes is in use; they are not served. Choose another one with MONITORING.",
    });
    await opened!.close();
  }
});

test("a request that did not pass through the application has no state", () => {
  const request = {} as never;
  expect(() => requestState(request)).toThrow("The request id middleware has to come first.");
  expect([claimsOf(request), findRequestState(request), findRequestState(undefined)]).toEqual([
    undefined,
    undefined,
    undefined,
  ]);
});

test("a large response is the same text in pieces, up to the allowed length", async () => {
  const answer = {
    data: { a: [1, "x", null, undefined, { b: [] }, new Date(0)], gone: undefined, empty: {} },
    written: new WrittenJson('{"as":"it is"}'),
  };
  const text = await answerText(answer, 1_000);
  expect(text).toBe(JSON.stringify(answer));
  expect(await answerText(answer, text!.length)).toBe(text);
  expect(await answerText(answer, text!.length - 1)).toBeUndefined();
  expect(JSON.stringify(new WrittenJson("[1]"))).toBe("[1]");
});
