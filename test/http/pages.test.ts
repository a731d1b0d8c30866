import { once } from "node:events";
import { Agent } from "node:https";
import { connect } from "node:net";
import { expect, test } from "@jest/globals";
import pino from "pino";
import { createMetrics } from "../../src/http/metrics.ts";
import { openMonitoring, startMonitoring } from "../../src/http/monitoring.ts";
import { Readiness } from "../../src/monitoring/readiness.ts";
import { startServer } from "./server.ts";

const get = { method: "GET", headers: { accept: "text/html" } };

test("the explorer page and all its assets come from this server", async () => {
  await using server = await startServer();
  const page = await server.send({ ...get, path: "/" });
  expect(page.status).toBe(200);
  expect(page.headers["content-type"]).toMatch(/^text\/html/);
  expect(page.text).toMatch(/mutation SignIn/);
  expect(page.text).toMatch(/Authorization/);
  const policy = String(page.headers["content-security-policy"]);
  expect(policy).toMatch(/connect-src 'self'/);
  expect(policy).not.toMatch(/https?:|script-src[^;]*unsafe/);
  const addresses = [...page.text.matchAll(/(?:src|href|from)=?\s*"([^"]+)"/g)].map(
    ([, address]) => address!,
  );
  expect(addresses.length).toBeGreaterThan(2);
  for (const address of addresses) {
    expect(address).toMatch(/^\/ruru-static\//);
    const asset = await server.send({ ...get, path: address });
    expect(asset.status).toBe(200);
    expect(asset.headers["x-content-type-options"]).toBe("nosniff");
  }
});

test("the policy has the hash of each inline script", async () => {
  await using server = await startServer();
  const page = await server.send({ ...get, path: "/" });
  const inline = [...page.text.matchAll(/<script(?![^>]*\ssrc=)/g)].length;
  expect(inline).toBeGreaterThan(0);
  expect(String(page.headers["content-security-policy"]).match(/'sha256-/g)).toHaveLength(inline);
});

test("paths beside the assets are not served", async () => {
  await using server = await startServer();
  for (const path of [
    "/ruru-static/nothing.js",
    "/ruru-static/../package.json",
    "/ruru-static/%2e%2e/package.json",
  ]) {
    const answer = await server.send({ ...get, path });
    expect([answer.status, answer.json.errors[0].extensions.code]).toEqual([404, "NOT_FOUND"]);
  }
});

test("switched off, there is neither page nor asset", async () => {
  await using server = await startServer({ explorer: false });
  for (const path of ["/", "/ruru-static/ruru.js"])
    expect((await server.send({ ...get, path })).status).toBe(404);
});

test("metrics count requests, errors and the pools' connections", async () => {
  const metrics = createMetrics();
  const numbers = () => ({ pools: { api: { total: 3, idle: 2, waiting: 1 } } });
  await using server = await startServer({ metrics, numbers });
  await server.graphql("{ ok }");
  await server.graphql("{ nothing }");
  // Not for everybody.
  expect((await server.send({ method: "GET", path: "/metrics" })).status).toBe(404);
  const page = await metrics.render();
  expect(page.contentType).toMatch(/^text\/plain/);
  expect(page.text).toMatch('plat_http_requests_total{route="/graphql",method="POST",status="200"} 2');
  expect(page.text).toMatch('plat_errors_total{code="BAD_USER_INPUT"} 1');
  expect(page.text).toMatch('plat_pool_connections{pool="api",state="waiting"} 1');
  expect(page.text).toMatch(/plat_http_request_duration_seconds_bucket/);
});

test("metrics and probes have an address of their own, over plain HTTP", async () => {
  const readiness = new Readiness();
  let works = true;
  readiness.add("part", () => works);
  const metrics = createMetrics();
  const opened = await startMonitoring({ host: "127.0.0.1", port: 0, metrics, readiness });
  const ask = (path: string, init?: RequestInit) => fetch(`http://127.0.0.1:${opened.port}${path}`, init);
  try {
    expect(await (await ask("/healthz")).json()).toEqual({ status: "alive" });
    expect(await (await ask("/readyz?x=1")).json()).toEqual({ status: "ready", checks: { part: true } });
    works = false;
    expect((await ask("/readyz")).status).toBe(503);
    const numbers = await ask("/metrics");
    expect([numbers.status, await numbers.text()]).toEqual([200, expect.stringMatching(/process_cpu/)]);
    for (const path of ["/", "/graphql", "/toString", "/metrics/"])
      expect((await ask(path)).status).toBe(404);
    expect((await ask("/metrics", { method: "POST" })).status).toBe(405);
    // Where nobody chose the address, one that is taken keeps nothing from starting; where somebody did, it does.
    const log = pino({ level: "silent" });
    const given = { metrics, readiness, log };
    const taken = { port: opened.port - 1, mode: "all" as const };
    expect(await openMonitoring({ ...taken, monitoring: undefined }, given)).toBeUndefined();
    const chosen = { host: "127.0.0.1", port: opened.port };
    await expect(openMonitoring({ ...taken, monitoring: chosen }, given)).rejects.toThrow(
      /^MONITORING: cannot/,
    );
    expect(await openMonitoring({ ...taken, monitoring: "off" }, given)).toBeUndefined();
  } finally {
    await opened.close();
  }
});

test("pages are read only with GET", async () => {
  await using server = await startServer({
    pages: { "/healthz": (_request, response) => void response.json({}) },
  });
  expect((await server.send({ method: "GET", path: "/healthz" })).status).toBe(200);
  for (const path of ["/healthz", "/"]) {
    const answer = await server.send({ path });
    expect([answer.status, answer.headers.allow]).toEqual([405, "GET, HEAD"]);
  }
});

test("closing does not wait for connections without a request", async () => {
  const server = await startServer({
    pages: { "/healthz": (_request, response) => void response.json({}) },
  });
  const silent = connect(server.port, "127.0.0.1");
  await once(silent, "connect");
  const keptAlive = new Agent({ rejectUnauthorized: false, keepAlive: true });
  const path = "/healthz";
  expect((await server.send({ method: "GET", path, agent: keptAlive })).status).toBe(200);
  const ended = once(silent, "close");
  await server.server.close(1_000_000);
  await ended;
  keptAlive.destroy();
});

test("closing lets a running request end", async () => {
  let release = () => {};
  const held = new Promise<void>((resolve) => (release = resolve));
  let arrived = () => {};
  const running = new Promise<void>((resolve) => (arrived = resolve));
  const server = await startServer({
    pages: {
      "/slow": (_request, response) => {
        arrived();
        void held.then(() => response.json({ done: true }));
      },
    },
  });
  const slow = server.send({ method: "GET", path: "/slow" });
  await running;
  const closed = server.server.close();
  release();
  expect((await slow).json).toEqual({ done: true });
  await closed;
  await expect(server.send({ method: "GET", path: "/slow" })).rejects.toThrow(/ECONNREFUSED/);
});
