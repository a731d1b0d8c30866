import { once } from "node:events";
import { readdir, readFile } from "node:fs/promises";
import { Agent } from "node:https";
import { connect } from "node:net";
import { join } from "node:path";
import { expect, test } from "@jest/globals";
import pino from "pino";
import { buildSchema } from "postgraphile/graphql";
import { createMetrics } from "../../src/http/metrics.ts";
import { openMonitoring, startMonitoring } from "../../src/http/monitoring.ts";
import { repository } from "../../src/http/portal/guides.ts";
import { readFacts } from "../../src/http/portal/referenceFacts.ts";
import { MarkdownReference } from "../../src/http/portal/markdownReference.ts";
import { Readiness } from "../../src/monitoring/readiness.ts";
import { startServer, tokens } from "./server.ts";

const get = { method: "GET", headers: { accept: "text/html" } };

/** The files that every page of the portal loads. */
const portalPages = ["/", "/guides", "/guides/errors", "/reference", "/explorer", "/sales-floor"];

test("the pages of the portal and all that they load come from this server, without inline scripts or styles", async () => {
  await using server = await startServer();
  for (const path of portalPages) {
    const page = await server.send({ ...get, path });
    expect([path, page.status]).toEqual([path, 200]);
    expect(page.headers["content-type"]).toMatch(/^text\/html/);
    const policy = String(page.headers["content-security-policy"]);
    expect(policy).toMatch(/^default-src 'none'; script-src 'self'; style-src 'self';/);
    expect(policy).toMatch(/connect-src 'self'.*frame-ancestors 'none'/);
    const edited = path === "/explorer" ? " style-src-attr 'unsafe-inline';" : "";
    expect(policy.replace(edited, "")).not.toMatch(/https?:|unsafe|sha256|\*/);
    expect(page.text).not.toMatch(/<script(?![^>]* src=)|<style| style=| on[a-z]+="/);
    const loaded = [
      ...page.text.matchAll(/<(?:script|link(?! rel="alternate"))[^>]*(?:src|href)="([^"]+)"/g),
    ].map(([, to]) => to!);
    expect(loaded.length).toBeGreaterThan(2);
    for (const address of loaded) await expectAsset(server, address);
  }
});

/** Fetches a file of the portal and its imports. */
async function expectAsset(server: Awaited<ReturnType<typeof startServer>>, address: string): Promise<void> {
  expect(address).toMatch(/^\/portal\//);
  const asset = await server.send({ ...get, path: address });
  expect([address, asset.status, asset.headers["x-content-type-options"]]).toEqual([address, 200, "nosniff"]);
  if (/editor\.js$/.test(address)) return;
  for (const [, name] of asset.text.matchAll(/^import [^"]*"\.\/([^"]+)";$/gm))
    expect((await server.send({ ...get, path: `/portal/${name}` })).status).toBe(200);
}

test("a page of the portal is sent once, then revalidated by browsers", async () => {
  await using server = await startServer();
  const first = await server.send({ ...get, path: "/portal/editor.js" });
  expect(first.headers["cache-control"]).toBe("no-cache");
  const etag = String(first.headers.etag);
  const again = await server.send({
    method: "GET",
    path: "/portal/editor.js",
    headers: { "if-none-match": etag },
  });
  expect([again.status, again.text]).toEqual([304, ""]);
  const small = await server.send({
    method: "GET",
    path: "/portal/editor.js",
    headers: { "accept-encoding": "gzip" },
  });
  expect(small.headers["content-encoding"]).toBe("gzip");
  expect(Number(small.headers["content-length"])).toBeLessThan(250_000);
});

test("signing in as a demo user is not offered in production, or without the demo", async () => {
  const demo = {
    password: "demo-password",
    people: [{ username: "demo@plat.example", name: "D", part: "P" }],
  };
  const offered = async (overrides: Parameters<typeof startServer>[0]) => {
    await using server = await startServer(overrides);
    return (await server.send({ ...get, path: "/portal/demo.json" })).json;
  };
  expect(await offered({ demo })).toEqual(demo);
  expect(await offered({})).toEqual({ people: [] });
  expect(await offered({ demo, production: true, explorer: true })).toEqual({ people: [] });
});

test("paths outside of the files of the portal are not served", async () => {
  await using server = await startServer();
  for (const path of [
    "/portal/nothing.js",
    "/portal/editor.source.js",
    "/portal/../package.json",
    "/portal/%2e%2e/package.json",
    "/portal/..%2f..%2f..%2f..%2fpackage.json",
    "/portal/toString",
    "/guides/..%2fpackage",
    "/guides/nothing",
  ]) {
    const answer = await server.send({ ...get, path });
    expect([path, answer.status, answer.json.errors[0].extensions.code]).toEqual([path, 404, "NOT_FOUND"]);
  }
});

/** The targets of links in a Markdown text, except for anchors in it. */
const linksOf = (text: string): string[] =>
  [...text.replaceAll(/^```[\s\S]*?^```$/gm, "").matchAll(/\]\((?<to>[^)\s]+)\)/g)].map(({ groups }) =>
    groups!.to!.replace(/(?<!^)#.*/, ""),
  );

test("from /llms.txt, links lead to every guide and to the reference as Markdown, and all targets exist", async () => {
  await using server = await startServer();
  const read = new Set<string>();
  for (const waiting = ["/llms.txt"]; waiting.length > 0;) {
    const path = waiting.pop()!;
    if (read.has(path)) continue;
    read.add(path);
    const answer = await server.send({ method: "GET", path });
    expect([path, answer.status]).toEqual([path, 200]);
    expect([path, answer.headers["content-type"]]).toEqual([
      path,
      path === "/llms.txt" ? "text/plain; charset=utf-8" : "text/markdown; charset=utf-8",
    ]);
    const links = linksOf(answer.text).filter((to) => !/^(?:https:|#)/.test(to));
    expect([path, links.filter((to) => !/^\/.*\.md$/.test(to))]).toEqual([path, []]);
    waiting.push(...links);
  }
  const guides = (await readdir(join(repository, "docs"))).filter((name) => name.endsWith(".md"));
  const unread = guides.filter((name) => name !== "README.md" && !read.has(`/guides/${name}`));
  expect(unread).toEqual([]);
  for (const path of ["/reference/domains/leads.md", "/reference/createLead.md", "/reference/Tier.md"])
    expect(read).toContain(path);
  const page = await server.send({ ...get, path: "/guides/errors" });
  expect(page.text).toMatch('<link rel="alternate" type="text/markdown" href="/guides/errors.md">');
});

test("the reference as Markdown has the contents of the page, and all of its links have targets", async () => {
  const schema = buildSchema(await readFile(join(repository, "schema.graphql"), "utf8"));
  const reference = new MarkdownReference(schema, await readFacts());
  const lead = reference.text("createLead")!;
  expect(lead).toMatch(/^# createLead\n\nMutation, Leads\.\n/);
  expect(lead).toMatch(/## Permissions\n\n- `lead\.read`, `lead\.write`/);
  expect(lead).toMatch("- `projectId` [`ID!`](/reference/ID.md): ");
  expect(lead).toMatch(/## Errors\n\n`BAD_USER_INPUT`, .*`IDEMPOTENCY_MISMATCH`/);
  expect(lead).toMatch(/^\| NEW \| COLD, CONTACTED, /m);
  expect(lead).toMatch(/### Refused: the lead is there already[^]*Answer:[^]*"CONFLICT"/);
  expect(lead).toMatch("Causes `lead.created`");
  // A query and a subscription have this name.
  expect(reference.text("events")).toMatch(/^Query, [^]*^Subscription, /m);
  const operations = [schema.getQueryType(), schema.getMutationType(), schema.getSubscriptionType()];
  const names = [
    ...Object.keys(schema.getTypeMap()).filter((name) => !/^__|^(?:Query|Mutation|Subscription)$/.test(name)),
    ...operations.flatMap((type) => Object.keys(type!.getFields())),
  ];
  const domains = linksOf(reference.text("")!)
    .filter((to) => to.startsWith("/reference/domains/"))
    .map((to) => to.slice("/reference/".length, -".md".length));
  const broken = ["", ...domains, ...names].flatMap((path) =>
    linksOf(reference.text(path) ?? "](/reference/nothing)").filter(
      (to) =>
        to.startsWith("/reference/") && reference.text(to.slice("/reference/".length, -".md".length)) == null,
    ),
  );
  expect(broken).toEqual([]);
  expect([reference.text("nothing"), reference.text("__Type")]).toEqual([undefined, undefined]);
});

test("if visitors may not read the schema, they do not get it as Markdown either", async () => {
  await using server = await startServer({ production: true, explorer: true });
  const paths = ["/reference.md", "/reference/createLead.md", "/reference/domains/leads.md"];
  const read = (path: string, token?: string) =>
    server.send({ method: "GET", path, headers: token ? { authorization: `Bearer ${token}` } : {} });
  for (const path of paths) expect([path, (await read(path, tokens.good)).status]).toEqual([path, 200]);
  // Also for pages cached for others, and those that do not exist.
  for (const path of [...paths, "/reference/Nothing.md"]) {
    const { status, json } = await read(path);
    expect([path, status, json.errors[0].extensions.code]).toEqual([path, 401, "UNAUTHENTICATED"]);
  }
  expect((await read("/reference.md", "unknown")).status).toBe(401);
  expect((await read("/reference/Nothing.md", tokens.good)).status).toBe(404);
  // Of the reference, it only contains the domains.
  const { status, text } = await read("/llms.txt");
  const named = linksOf(text).filter((to) => !/^\/(?:guides\/|reference\.md|reference\/domains\/)/.test(to));
  expect([status, named]).toEqual([200, []]);
});

test("a disabled portal has no pages or files", async () => {
  await using server = await startServer({ explorer: false });
  for (const path of [
    ...portalPages,
    "/portal/portal.js",
    "/portal/demo.json",
    "/portal/facts.json",
    "/llms.txt",
    "/guides/errors.md",
    "/reference.md",
  ])
    expect((await server.send({ method: "GET", path })).status).toBe(404);
});

test("metrics count requests, errors and the pools' connections", async () => {
  const metrics = createMetrics();
  const numbers = () => ({ pools: { api: { total: 3, idle: 2, waiting: 1 } } });
  await using server = await startServer({ metrics, numbers });
  await server.graphql("{ ok }");
  await server.graphql("{ nothing }");
  // Not on the public port.
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
    // If the default address is in use, the service starts anyway; if a configured one is, it does not.
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

test("the job console is a page with its script and style, without data", async () => {
  await using server = await startServer({ explorer: false });
  for (const [path, type] of [
    ["/jobs", "text/html"],
    ["/jobs/console.js", "text/javascript"],
    ["/jobs/console.css", "text/css"],
  ] as const) {
    const { status, headers, text } = await server.send({ ...get, path });
    expect([path, status, headers["content-type"]]).toEqual([path, 200, `${type}; charset=utf-8`]);
    expect(headers["content-security-policy"]).toBe(
      "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    );
    expect(text.length).toBeGreaterThan(100);
    const refused = await server.send({ path });
    expect([path, refused.status, refused.headers.allow]).toEqual([path, 405, "GET, HEAD"]);
  }
  for (const path of ["/jobs/", "/Jobs", "/jobs/page.html"])
    expect([path, (await server.send({ ...get, path })).status]).toEqual([path, 404]);
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
