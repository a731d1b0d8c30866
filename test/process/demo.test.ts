/** The demo organization: only loaded into an empty database, completely, by the rules of the API, without mail. */
import { afterAll, afterEach, beforeAll, expect, test } from "@jest/globals";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client, Pool } from "pg";
import { createFileStore } from "../../src/providers/files/index.ts";
import pino from "pino";
import { demoUser, loadDemo } from "../../src/demo/index.ts";
import { demoPayments } from "../../src/demo/demoPayments.ts";
import { startSandbox } from "../../src/providers/payments/sandbox/index.ts";
import { createStripeProcessor } from "../../src/providers/payments/stripe.ts";
import { migrate } from "../../src/database/migrate.ts";
import { brokenInvariants } from "../../src/doctor/invariants.ts";
import { startApi } from "../harness/api.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { laterCreations } from "../harness/laterCreations.ts";

/** A database with the demo, for tests that only read. */
let demo: TestDatabase;
let folder: string;
const databases: TestDatabase[] = [];

async function testDatabase(from?: "empty"): Promise<TestDatabase> {
  const database = await createTestDatabase(from);
  databases.push(database);
  return database;
}

beforeAll(async () => {
  demo = await createTestDatabase();
  folder = await mkdtemp(join(tmpdir(), "plat-demo-"));
  await loadDemo(demo.ownerUrl, {
    store: createFileStore({ dataDir: folder }),
    incomingFolder: join(folder, "incoming"),
  });
});

afterAll(async () => {
  await demo?.drop();
  await rm(folder, { recursive: true, force: true });
});

afterEach(async () => {
  for (const database of databases.splice(0)) await database.drop();
});

async function query<R extends object>(url: string, sql: string): Promise<R[]> {
  const client = new Client({ connectionString: url });
  await client.connect();
  try {
    return (await client.query(sql)).rows as R[];
  } finally {
    await client.end();
  }
}

test("is loaded once, also when two processes start concurrently, and is the same each time", async () => {
  const contents = (url: string) =>
    query(
      url,
      `select l.name, l.email, l.phone, l.status, l.source, l.tags, (now() - l.registered_at) < interval '1 day' as fresh, p.title
       from app_public.leads l join app_public.projects p on p.id = l.project_id order by l.email`,
    );
  const { ownerUrl } = await testDatabase();
  expect((await Promise.all([loadDemo(ownerUrl), loadDemo(ownerUrl)])).sort()).toEqual(["loaded", "present"]);
  expect(await query(ownerUrl, "select name from app_public.organizations order by name")).toEqual([
    { name: "Larkfield Homes" },
    { name: "Quayside Sales" },
  ]);
  expect(await contents(ownerUrl)).toEqual(await contents(demo.ownerUrl));
});

test("is not loaded into a database with data", async () => {
  const { ownerUrl } = await testDatabase();
  await query(ownerUrl, "insert into app_public.users (first_name) values ('Ada')");
  expect(await loadDemo(ownerUrl)).toBe("absent");
  expect(await query(ownerUrl, "select from app_public.organizations")).toEqual([]);
});

test("has leads in every status, with ordered dates in the past, and the transitions in their history", async () => {
  const { ownerUrl } = demo;
  const statuses = await query(
    ownerUrl,
    "select v.value from app_public.lead_status_values v where not exists (select from app_public.leads l where l.status = v.value)",
  );
  expect(statuses).toEqual([]);
  expect(
    await query(
      ownerUrl,
      `select name from app_public.leads where first_response_at not between registered_at and now()
         or last_interaction_at not between registered_at and now() or (status = 'LOST') <> (lost_at is not null and fallout_reason_id is not null)`,
    ),
  ).toEqual([]);
  const [span] = await query<{ days: number }>(
    ownerUrl,
    "select extract(day from max(registered_at) - min(registered_at))::int as days from app_public.leads",
  );
  expect(span!.days).toBeGreaterThan(90);
  const skipped = await query(
    ownerUrl,
    `select e.changes -> 'status' as step from app_public.events e where e.subject_type = 'lead' and e.changes ? 'status'
       and not exists (select from app_hidden.transitions t where t.subject = 'lead'
         and t.from_state = e.changes -> 'status' ->> 0 and t.to_state = e.changes -> 'status' ->> 1)`,
  );
  expect(skipped).toEqual([]);
});

test("has deals in every state, and no violated invariant", async () => {
  const missing = await Promise.all(
    ["reservation", "negotiation", "offer", "buyer", "personalization"].map((subject) =>
      query(
        demo.ownerUrl,
        `select '${subject}' as subject, v.value from app_public.${subject}_status_values v
         where not exists (select from app_public.${subject}s r where r.status = v.value)`,
      ),
    ),
  );
  expect(missing.flat()).toEqual([]);
  const owner = new Pool({ connectionString: demo.ownerUrl, max: 1 });
  try {
    expect(await brokenInvariants(owner)).toEqual({});
  } finally {
    await owner.end();
  }
});

test("an event that names a record follows its creation", async () => {
  const owner = new Client({ connectionString: demo.ownerUrl });
  await owner.connect();
  expect(await laterCreations(owner)).toEqual([]);
  await owner.end();
});

test("has two workflows, which run for new leads and open reservations, and not for existing ones", async () => {
  expect(
    await query(
      demo.ownerUrl,
      `select w.name, w.status, x.trigger_type, x.status as execution, count(*)::int as amount
       from app_public.workflows w join app_public.workflow_executions x on x.workflow_id = w.id group by 1, 2, 3, 4 order by 1`,
    ),
  ).toEqual([
    {
      name: "Before a reservation ends",
      status: "ENABLED",
      trigger_type: "MANUAL",
      execution: "PENDING",
      amount: 2,
    },
    { name: "Welcome new leads", status: "ENABLED", trigger_type: "MANUAL", execution: "PENDING", amount: 2 },
  ]);
  const late = await query(
    demo.ownerUrl,
    `select t.workflow_id from app_private.workflow_triggers t join app_private.event_counters c on c.stream_id = t.organization_id
     join app_public.events e on e.organization_id = t.organization_id and e.sequence > t.from_sequence and e.name in ('lead.created', 'reservation.created')`,
  );
  expect(late).toEqual([]);
});

test("sends no mail", async () => {
  await query(demo.ownerUrl, "select app_private.fan_out_notifications(1000000)");
  expect(await query(demo.ownerUrl, "select task_identifier from graphile_worker.jobs")).toEqual([]);
});

test("has pictures, a site plan and a public document, whose contents are in the store", async () => {
  const rows = await query<{ table_name: string; checksum: string }>(
    demo.ownerUrl,
    ["organization_avatars", "project_avatars", "project_images", "site_plans", "project_documents"]
      .map((table) => `select '${table}' as table_name, checksum from app_public.${table}`)
      .join(" union all "),
  );
  expect(new Set(rows.map((row) => row.table_name)).size).toBe(5);
  const store = createFileStore({ dataDir: folder });
  for (const { checksum } of rows) expect(await store.size(checksum)).toBeLessThan(100_000);
});

test("can be loaded by an owner of the database without superuser rights", async () => {
  const { ownerUrl } = await testDatabase("empty");
  const name = new URL(ownerUrl).pathname.slice(1);
  const owner = new URL(ownerUrl);
  owner.username = `owner_${name}`;
  owner.password = "a-password-of-the-tests";
  await query(
    ownerUrl,
    `create role ${owner.username} login createrole password '${owner.password}';
     alter database ${name} owner to ${owner.username}; grant plat_owner, plat_user, plat_anonymous, plat_worker, plat_masker, plat_authenticator to ${owner.username} with admin true, inherit false, set false`,
  );
  try {
    await query(
      ownerUrl,
      "create extension pg_trgm; create extension unaccent; create extension pgcrypto; create extension btree_gist",
    );
    await migrate(owner.href, { authenticatorUrl: demo.authenticatorUrl });
    expect(await loadDemo(owner.href)).toBe("loaded");
  } finally {
    for (const database of databases.splice(0)) await database.drop();
    const cluster = new URL(ownerUrl);
    cluster.pathname = "/postgres";
    await query(cluster.href, `drop owned by ${owner.username}`);
    await query(cluster.href, `drop role ${owner.username}`);
  }
});

test("its people see what their roles permit", async () => {
  const api = await startApi(demo);
  try {
    const signIn = async (username: string) => {
      const { login } = await api.anonymous.get(
        "mutation ($input: LoginInput!) { login(input: $input) { token } }",
        { input: { username, password: demoUser.password } },
      );
      return api.person(login.token);
    };
    const overview = `{ viewer { fullName } projects(first: 10) { title } leadsConnection { totalCount } publicProjects { title } }`;
    const dana = await (await signIn(demoUser.email)).get(overview);
    expect(dana.viewer.fullName).toBe("Dana Reyes");
    expect(dana.projects.map((p: { title: string }) => p.title).sort()).toEqual([
      "Larkfield Gardens",
      "Mill Creek Towns",
      "The Foundry Lofts",
    ]);
    expect(dana.leadsConnection.totalCount).toBeGreaterThanOrEqual(40);
    const sofia = await (await signIn("sofia")).get(overview);
    expect(sofia.projects).toEqual([{ title: "Larkfield Gardens" }]);
    expect(sofia.leadsConnection.totalCount).toBe(3);
    const visitor = await api.anonymous.get("{ publicProjects { title } }");
    expect(visitor.publicProjects.map((p: { title: string }) => p.title).sort()).toEqual([
      "Larkfield Gardens",
      "Mill Creek Towns",
    ]);
  } finally {
    await api.stop();
  }
});

test("has a public catalogue, without internal records of the team", async () => {
  const api = await startApi(demo);
  try {
    const { publicProjects } = await api.anonymous
      .get(`{ publicProjects(first: 1, filter: { query: "Gardens" }) {
      specCategories { title elements { options { price cost } standardOption { title } } }
      openHouses { status } promotions { status } testimonials { author } collections { projects { title } }
      depositSchedule { percent } salesOffice { title } trackers { id } leasePermits { id } } }`);
    const [gardens] = publicProjects;
    expect(gardens).toMatchObject({
      openHouses: [{ status: "CANCELED" }, { status: "SCHEDULED" }, { status: "ENDED" }],
      promotions: [{ status: "SCHEDULED" }, { status: "ACTIVE" }],
      testimonials: [{}, {}],
      collections: [{ projects: [{ title: "Larkfield Gardens" }, { title: "Mill Creek Towns" }] }],
      depositSchedule: [{ percent: "5" }, { percent: "5" }, { percent: "10" }],
      salesOffice: { title: "Larkfield presentation centre" },
      trackers: null,
      leasePermits: null,
    });
    expect(gardens.specCategories.map(({ title }: { title: string }) => title)).toEqual([
      "Kitchen",
      "Floors",
    ]);
    for (const { elements } of gardens.specCategories)
      for (const { options, standardOption } of elements) {
        expect(standardOption.title).toEqual(expect.any(String));
        expect(options.map(({ cost }: { cost: unknown }) => cost)).not.toContainEqual(expect.any(String));
      }
    const { nearestCity } = await api.anonymous.get("{ nearestCity { name projectCount resolvedFrom } }");
    expect(nearestCity).toEqual({ name: expect.any(String), projectCount: 1, resolvedFrom: "FALLBACK" });
  } finally {
    await api.stop();
  }
});

test("its buyer has paid a deposit by card, at the sandbox processor", async () => {
  const log = pino({ level: "silent" });
  const sandbox = await startSandbox({ connectionString: demo.workerUrl, log });
  try {
    const { api, secretKey } = sandbox;
    const url = "https://plat.example";
    await demoPayments(demo, createStripeProcessor({ secretKey, api, returnUrl: url, serviceUrl: url }));
  } finally {
    await sandbox.stop();
  }
  expect(
    await query(
      demo.ownerUrl,
      `select d.status::text as deposit, d.amount_paid::text as paid, c.status::text as charge, c.card_last4
       from app_public.deposits d join app_public.processor_charges c on c.deposit_id = d.id`,
    ),
  ).toEqual([{ deposit: "PAID", paid: "500.00", charge: "SUCCEEDED", card_last4: "4242" }]);
});
