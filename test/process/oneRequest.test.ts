/**
 * One request id and one trace, from a request to its statements, jobs, events, webhooks and mails; and the number of
 * connections.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readdir, readFile, realpath } from "node:fs/promises";
import { request } from "node:https";
import { join } from "node:path";
import { Pool } from "pg";
import PostalMime from "postal-mime";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { embeddedUrl } from "../../src/database/embeddedServer.ts";
import { postmasterPort } from "../../src/database/postmaster.ts";
import { makeSetter } from "../../src/database/serverSettings.ts";
import { type Collector, startCollector } from "../monitoring/collector.ts";
import { jwtKeys } from "../harness/api.ts";
import { openStream } from "../harness/eventStream.ts";
import { migratedFolder, startService, type Service } from "../harness/service.ts";
import { signUp } from "../harness/signUp.ts";
import { until } from "../harness/until.ts";
import { type Receiver, startReceiver } from "../webhooks/receiver.ts";

let data: Awaited<ReturnType<typeof migratedFolder>>;
let service: Service;
let collector: Collector;
let receiver: Receiver;
let owner: Pool;
let token: string;
let home: { id: string };
let project: { id: string };

beforeAll(async () => {
  [data, collector, receiver] = await Promise.all([migratedFolder(), startCollector(), startReceiver()]);
  service = await startService({
    env: {
      DATA_DIR: data.path,
      LOG_LEVEL: "debug",
      LOOPBACK_WEBHOOKS: "1",
      JWT_KEYS: jwtKeys.map(({ kid, secret }) => `${kid}:${secret}`).join(","),
      SLOW_STATEMENT_MS: "1",
      OTEL_EXPORTER_OTLP_ENDPOINT: collector.url,
      OTEL_EXPORTER_OTLP_HEADERS: "x-key=of%20the%20collector",
      OTEL_TRACES_SAMPLER_ARG: "1",
    },
  });
  const port = postmasterPort(await realpath(join(data.path, "postgres", "data")))!;
  owner = new Pool({ connectionString: await embeddedUrl(data.path, port), max: 2 });
  owner.on("error", () => {});
  token = (
    await signUp(owner, "Owen Harbour", (claims) => createLoginTokens(jwtKeys).sign(JSON.parse(claims)))
  ).token;
});
afterAll(async () => {
  await owner?.end();
  await service?.stop();
  await receiver?.close();
  await collector?.[Symbol.asyncDispose]();
  await data?.[Symbol.asyncDispose]();
});

/** Sends a document under a separate request id; with the token of the owner by default. */
async function ask(
  id: string,
  query: string,
  input?: unknown,
  headers: Record<string, string> = { authorization: `Bearer ${token}` },
): Promise<any> {
  const text = await new Promise<string>((done, fail) => {
    request(
      `${service.baseUrl}/graphql`,
      {
        method: "POST",
        rejectUnauthorized: false,
        agent: false,
        headers: { "content-type": "application/json", "x-request-id": id, ...headers },
      },
      (response) => {
        let answer = "";
        response.setEncoding("utf8").on("data", (part) => (answer += part));
        response.on("end", () => done(answer));
      },
    )
      .on("error", fail)
      .end(JSON.stringify({ query, variables: input === undefined ? {} : { input } }));
  });
  const { data: answer, errors } = JSON.parse(text);
  if (errors) throw new Error(text);
  return answer;
}

/** The lines of the log so far. */
const lines = (): any[] =>
  service
    .log()
    .split("\n")
    .slice(0, -1)
    .map((line) => JSON.parse(line));

const traceId = "0af7651916cd43dd8448eb211c80319c";

test("a request of a visitor: its id and its trace are those of the statement, the job and the mail", async () => {
  await ask(
    "stranger-1",
    'mutation { contactService(input: { name: "Vi", email: "vi@example.com", message: "Hello" }) }',
    undefined,
    { traceparent: `00-${traceId}-b7ad6b7169203331-01` },
  );
  const outbox = join(data.path, "outbox");
  const [name] = await until(
    () => readdir(outbox).catch(() => [] as string[]),
    (names) => names.some((found) => found.endsWith(".eml")),
  );
  const mail = await PostalMime.parse(await readFile(join(outbox, name!)));
  expect(mail.headers.find(({ key }) => key === "x-request-id")?.value).toBe("stranger-1");

  const ofRequest = ({ requestId }: any) => requestId === "stranger-1";
  const log = await until(
    () => lines().filter(ofRequest),
    (found) => found.some(({ msg }) => /^Completed task/.test(msg)),
  );
  expect(log.find(({ msg }) => msg === "request")).toMatchObject({
    operationName: "{contactService}",
    operationType: "mutation",
  });
  expect(log.find(({ msg }) => /^Completed task/.test(msg))).toMatchObject({
    task: "service__contacted",
    job: expect.anything(),
  });
  const slow = log.filter(({ event }) => event === "database.slow_statement");
  expect(slow).toContainEqual(
    expect.objectContaining({ pool: "plat-api", operation: "{contactService}", role: "plat_anonymous" }),
  );
  expect(JSON.stringify(slow)).not.toContain("vi@example.com");

  const spans = await until(
    () => collector.spans.filter((span) => span.traceId === traceId),
    (found) => found.some(({ name: called }) => called === "service__contacted"),
    { withinMs: 20_000 },
  );
  const named = (called: string) => spans.find((span) => span.name === called)!;
  expect(named("/graphql").parentSpanId).toBe("b7ad6b7169203331");
  expect(named("mutation").parentSpanId).toBe(named("/graphql").spanId);
  // The request has enqueued this job.
  expect(named("service__contacted")).toMatchObject({ kind: 5, parentSpanId: named("/graphql").spanId });
  const statements = spans.filter((span) => span.attributes["db.system.name"] === "postgresql");
  expect(statements.map(({ parentSpanId }) => parentSpanId)).toEqual(
    expect.arrayContaining([named("mutation").spanId, named("service__contacted").spanId]),
  );
  expect(new Set(spans.map(({ attributes }) => attributes["plat.request_id"]))).toEqual(
    new Set(["stranger-1"]),
  );
  expect(JSON.stringify(spans)).not.toContain("vi@example.com");
  expect(collector.headers[0]).toContain("x-key");
});

test("a request of a viewer: its id is that of the events of its jobs and of the deliveries of webhooks", async () => {
  ({ createOrganization: home } = await ask(
    "home-1",
    "mutation M($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }",
    { name: "Harbour Homes" },
  ));
  ({ createProject: project } = await ask(
    "project-1",
    "mutation M($input: CreateProjectInput!) { createProject(input: $input) { id } }",
    { organizationId: home.id, title: "Harbour View", status: "SELLING", currency: "CAD" },
  ));
  await ask("hook-1", "mutation M($input: CreateWebhookInput!) { createWebhook(input: $input) { id } }", {
    organizationId: home.id,
    url: receiver.url,
    events: ["lead.created"],
  });
  await ask("lead-1", "mutation MakeLead($input: CreateLeadInput!) { createLead(input: $input) { id } }", {
    projectId: project.id,
    name: "Lena",
    email: "lena@example.com",
  });
  const delivery = await receiver.next();
  expect(delivery.event.requestId).toBe("lead-1");
  expect(delivery.headers).toMatchObject({
    "x-request-id": "lead-1",
    traceparent: expect.stringMatching(/^00-[0-9a-f]{32}-[0-9a-f]{16}-01$/),
  });
  await ask(
    "export-1",
    "mutation M($input: ExportFloorPlansInput!) { exportFloorPlans(input: $input) { id } }",
    { projectId: project.id },
  );
  const { rows } = await until(
    () =>
      owner.query("select name, request_id from app_public.events where subject_type = 'export' order by id"),
    (found) => found.rows.length >= 3,
  );
  expect(new Set(rows.map(({ request_id }) => request_id))).toEqual(new Set(["export-1"]));
  const slow = lines().filter(({ event }) => event === "database.slow_statement");
  expect(slow).toContainEqual(
    expect.objectContaining({ requestId: "lead-1", operation: "MakeLead", role: "plat_user" }),
  );
  // A statement of a job contains the job.
  expect(slow).toContainEqual(
    expect.objectContaining({ requestId: "export-1", task: "export__requested", job: expect.anything() }),
  );
  // Work without a request has no id: a connection forgets its last user.
  const unasked = await owner.query(
    "select count(*)::int as amount from app_public.events where channel = 'SYSTEM' and request_id = 'home-1' and subject_type = 'export'",
  );
  expect(unasked.rows[0].amount).toBe(0);
});

test("a trace does not prevent prepared statements: its id is a parameter", () => {
  const of = (id: string) =>
    makeSetter({ role: "plat_user", "plat.traceparent": `00-${id}-b7ad6b7169203331-01` });
  expect(of("a".repeat(32))!.text).toBe(of("b".repeat(32))!.text);
  expect(of("a".repeat(32))!.values).toContain(`00-${"a".repeat(32)}-b7ad6b7169203331-01`);
});

/** Maximum numbers by name in pg_stat_activity: docs/operating.md has the same table. */
const most: Record<string, number> = {
  "plat-api": 8,
  "plat-pages": 2,
  "plat-worker-jobs": 4,
  "plat-worker": 4,
  "plat-worker-viewers": 2,
  "plat-live": 2,
  "plat-worker-line": 1,
  "plat-monitoring": 1,
  "plat readiness": 1,
};

test("a busy process has at most 25 connections, one of them to listen", async () => {
  const connections = async () => {
    const { rows } = await owner.query<{ name: string; amount: number; listening: number }>(
      `select application_name as name, count(*)::int as amount,
         count(*) filter (where query ilike 'listen%')::int as listening
       from pg_stat_activity where datname = current_database() and application_name like 'plat%' group by 1`,
    );
    return Object.fromEntries(rows.map(({ name, ...numbers }) => [name, numbers]));
  };
  // One person gets a share of the connections only.
  const tokens = [token];
  for (const name of ["Ada Harbour", "Max Harbour"]) {
    const person = await signUp(owner, name, (claims) => createLoginTokens(jwtKeys).sign(JSON.parse(claims)));
    await owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'OWNER')",
      [home.id, person.id],
    );
    tokens.push(person.token);
  }
  const stream = await openStream(service.baseUrl, token, { organizationId: home.id });
  expect(stream.status).toBe(200);
  // Statements on these connections wait for the lock, and keep the connection.
  const holder = await owner.connect();
  await holder.query(
    `begin; lock table app_public.leads, app_public.floor_plans, app_private.idempotency_keys,
       app_private.webhook_progress, app_public.workflow_executions`,
  );
  const made = Array.from({ length: 20 }, (_, n) =>
    ask(
      `busy-${n}`,
      "mutation M($input: CreateLeadInput!) { createLead(input: $input) { id } }",
      { projectId: project.id, name: `Busy ${n}` },
      { authorization: `Bearer ${tokens[n % tokens.length]}` },
    ),
  );
  try {
    await owner.query(
      "select graphile_worker.add_job('idempotency_keys__sweep') from generate_series(1, 10)",
    );
    const probes = Array.from({ length: 5 }, () => service.get("/readyz"));
    const found = await until(connections, (now) =>
      ["plat-api", "plat-worker-jobs"].every((name) => now[name]?.amount === most[name]),
    );
    await Promise.all(probes);
    expect(Object.entries(found).filter(([name, { amount }]) => amount > (most[name] ?? 0))).toEqual([]);
    const sum = Object.values(found).reduce((total, { amount }) => total + amount, 0);
    expect(sum).toBeLessThanOrEqual(25);
    expect(found["plat-worker-line"]).toMatchObject({ amount: 1 });
    // The one of the job runner, which cannot be shared.
    const listening = Object.entries(found).filter(([, numbers]) => numbers.listening > 0);
    expect(listening).toEqual([["plat-worker-jobs", expect.objectContaining({ listening: 1 })]]);
  } finally {
    await holder.query("rollback");
    holder.release();
  }
  expect(Object.values(most).reduce((a, b) => a + b)).toBe(25);
  await Promise.all(made);
  await until(() => stream.events.filter(({ type }) => type === "lead.created").length === made.length);
  stream.close();
});
