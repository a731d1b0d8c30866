/**
 * The crontab: each sweep processes many rows in small transactions, finds nothing when repeated, and blocks nobody.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { readdir, readFile } from "node:fs/promises";
import { parseCrontab } from "graphile-worker";
import { createSeal, credentialsOf } from "../../src/secrets/seal.ts";
import { sealUnbound } from "../harness/formerSeal.ts";
import { secretKeys } from "../harness/api.ts";
import { createProject } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createOutbox, runJobs, type Outbox } from "./worker.ts";
import { until } from "../harness/until.ts";

let world: World;
let outbox: Outbox;
let project: { id: string };
const many = 10_000;

beforeAll(async () => {
  world = await startWorld(undefined, { patienceMs: 150 });
  outbox = await createOutbox();
  project = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "By the Clock",
    timeZone: "America/Toronto",
  });
});
afterAll(async () => {
  await world.stop();
  await outbox.remove();
});

const query = async (text: string, values: unknown[] = []) => (await world.owner.query(text, values)).rows;
const count = async (from: string) => (await query(`select count(*)::int as n from ${from}`))[0].n;
async function run(task: string): Promise<void> {
  await query("select graphile_worker.add_job($1)", [task]);
  expect((await runJobs(world.database.ownerUrl, outbox.provider)).join("\n")).not.toMatch(/error/i);
}
/**
 * Counts the transactions that change rows of the table, and the maximum number of rows of one: from
 * transaction ids that triggers record.
 */
async function watch(table: string): Promise<() => Promise<{ most: number; transactions: number }>> {
  await query(`drop table if exists app_private.watched; create table app_private.watched (xid bigint);
    create or replace function app_private.watch() returns trigger language plpgsql security definer as
      $$ begin insert into app_private.watched select pg_current_xact_id()::text::bigint from gone; return null; end $$;
    create trigger watch after delete on ${table} referencing old table as gone for each statement execute function app_private.watch()`);
  return async () => {
    const [found] = await query(
      "select coalesce(max(n), 0)::int as most, count(*)::int as transactions from (select count(*) as n from app_private.watched group by xid) x",
    );
    await query(`drop trigger watch on ${table}`);
    return found;
  };
}

test("each task of the crontab exists, and runs once at a time", async () => {
  const items = parseCrontab(await readFile(new URL("../../src/crontab", import.meta.url), "utf8"));
  const tasks = (await readdir(new URL("../../src/tasks", import.meta.url))).map((name) =>
    name.replace(/\.ts$/, ""),
  );
  for (const { task, options } of items) {
    expect(tasks).toContain(task);
    expect([task, options]).toEqual([task, expect.objectContaining({ queueName: task, jobKey: task })]);
  }
});

test.each([
  [
    "idempotency_keys__sweep",
    "app_private.idempotency_keys",
    `insert into app_private.idempotency_keys (viewer, key_sha256, body_hmac, inserted_at)
       select 'user', sha256(n::text::bytea), '', now() - interval '25 hours' from generate_series(1, $1::int) n`,
  ],
  [
    "webhook_deliveries__sweep",
    "app_public.webhook_deliveries",
    `with hook as (insert into app_public.webhooks (organization_id, url, events, secret_prefix)
         select id, 'https://hooks.example/', '{*}', 'x' from app_public.organizations limit 1 returning id, organization_id)
       insert into app_public.webhook_deliveries (organization_id, webhook_id, status, inserted_at)
       select organization_id, id, 'SUCCEEDED', now() - interval '31 days' from hook, generate_series(1, $1::int)`,
  ],
  [
    "retention__sweep",
    "app_private.mail_deliveries",
    `insert into app_private.mail_deliveries (key, recipient, outcome, at)
       select 'm' || n, 'a@example.com', 'SENT', now() - interval '91 days' from generate_series(1, $1::int) n`,
  ],
  [
    "retention__sweep",
    "app_private.message_answers",
    `insert into app_private.message_answers (id, number, received_at)
       select 'SM' || n, '+14165550100', now() - interval '91 days' from generate_series(1, $1::int) n`,
  ],
  [
    "retention__sweep",
    "graphile_worker._private_jobs",
    `with task as (insert into graphile_worker._private_tasks (identifier) values ('known') on conflict (identifier) do update set identifier = 'known' returning id)
     insert into graphile_worker._private_jobs (task_id, attempts, max_attempts, updated_at)
       select (select id from task), 3, 3, now() - interval '31 days' from generate_series(1, $1::int) n`,
  ],
])("%s deletes expired rows of %s, a batch at a time, and nothing else", async (task, table, fill) => {
  const before = await count(table);
  await query(fill, [many + 1]);
  expect(await count(table)).toBe(before + many + 1);
  const watched = await watch(table);
  await run(task);
  expect(await count(table)).toBe(before);
  const { most, transactions } = await watched();
  expect(most).toBe(5000);
  expect(transactions).toBeGreaterThanOrEqual(3);
});

test("expired codes and tokens of invitations are deleted, valid ones are kept", async () => {
  await query(`insert into app_private.user_otps (user_id, code_sha256, expires_at)
    select id, sha256(id::text::bytea), case when row_number() over (order by id) = 1 then now() + interval '1 minute' else now() - interval '1 minute' end
    from app_public.users`);
  const invite = async (email: string) =>
    (
      await world.owen.get(
        `mutation ($input: CreateOrganizationInviteInput!) { createOrganizationInvite(input: $input) { id } }`,
        { input: { organizationId: world.harbour.id, email, role: "MEMBER" } },
      )
    ).createOrganizationInvite.id;
  const [fresh, old] = [await invite("fresh@example.com"), await invite("old@example.com")];
  await query(
    "insert into app_private.organization_invite_tokens select id, sha256(id::text::bytea) from app_public.organization_invites on conflict do nothing",
  );
  await query(
    "update app_public.organization_invites set expires_at = now() - interval '31 days' where id = $1",
    [old],
  );
  await run("retention__sweep");
  expect(await count("app_private.user_otps")).toBe(1);
  expect(await query("select invite_id from app_private.organization_invite_tokens")).toEqual([
    { invite_id: fresh },
  ]);
});

test("reseals any number of secrets with the current key, bound to their rows, and reports those that cannot be opened", async () => {
  const former = { kid: "2025.b", secret: "a former key of the tests with 32 characters" };
  const [sealed, lost] = [former, { ...former, kid: "2024" }].map((key) => sealUnbound(key, "whsec_old"));
  const columns = async (): Promise<string[]> =>
    (await query("select app_private.unbound_columns() as name")).map(({ name }) => name);
  const all = await columns();
  expect(all.toSorted()).toEqual([
    "app_private.integration_secrets.sealed",
    "app_private.webhook_secrets.previous_sealed",
    "app_private.webhook_secrets.sealed",
  ]);
  await query("delete from app_private.webhook_secrets");
  // Those that cannot be opened come first, and do not block the others.
  await query(
    `with hooks as (insert into app_public.webhooks (organization_id, url, events, secret_prefix)
       select o.id, 'https://hooks.example/' || n, '{*}', 'x' from (select id from app_public.organizations limit 1) o, generate_series(1, 2100) n
       returning id)
     insert into app_private.webhook_secrets (webhook_id, sealed, previous_sealed)
       select id, case when row_number() over (order by id) <= 1050 then $2 else $1 end, $1 from hooks`,
    [sealed, lost],
  );
  const integrations = await query(
    `with made as (insert into app_public.user_integrations (user_id, app_id, name) select $1, id, name from app_public.integration_apps where key = 'calendar_feed' returning id)
     insert into app_private.integration_secrets (integration_id, scope, sealed) select id, 'USER', $2 from made returning integration_id`,
    [world.olga.id, sealed],
  );
  const runSealing = async (unbound: string[]) => {
    await query("select graphile_worker.add_job('secrets__seal')");
    const keys = [...secretKeys, former];
    const lines = await runJobs(
      world.database.ownerUrl,
      outbox.provider,
      undefined,
      undefined,
      undefined,
      keys,
      unbound,
    );
    return lines.filter((line) => /secrets of/.test(line));
  };
  const kept = [
    "warning 1050 secrets of app_private.webhook_secrets.sealed cannot be opened: The key 2024 that a secret was sealed with is missing.",
    "warning 1050 secrets of app_private.webhook_secrets.sealed are not bound to a row yet; see UNBOUND_SECRETS.",
  ];
  const done = "with the current key of SECRET_KEYS, bound to their rows.";
  expect(await runSealing(all)).toEqual([
    `info 1 secrets of app_private.integration_secrets.sealed were sealed ${done}`,
    `info 2100 secrets of app_private.webhook_secrets.previous_sealed were sealed ${done}`,
    `info 1050 secrets of app_private.webhook_secrets.sealed were sealed ${done}`,
    ...kept,
  ]);
  expect(
    await query(
      "select split_part(sealed, '.', 1) as kid, count(*)::int as n from app_private.webhook_secrets group by 1 order by 1",
    ),
  ).toEqual([
    { kid: "2024", n: 1050 },
    { kid: "v2:test", n: 1050 },
  ]);
  const [{ sealed: anew }] = await query(
    "select sealed from app_private.integration_secrets where integration_id = $1",
    [integrations[0].integration_id],
  );
  const place = credentialsOf(integrations[0].integration_id);
  const seal = createSeal(secretKeys);
  expect(seal.open(anew, place)).toBe("whsec_old");
  expect(await runSealing(all)).toEqual(kept);

  // For a day, unbound texts that a process of the earlier version may still write are bound as well; then
  // none can be opened.
  expect(await columns()).toEqual(expect.arrayContaining(all));
  await query("update app_private.bound_columns set since = now() - interval '25 hours'");
  expect(await columns()).toEqual(["app_private.webhook_secrets.sealed"]);
  await query("update app_private.integration_secrets set sealed = $2 where integration_id = $1", [
    place.row,
    sealUnbound(secretKeys[0]!, "of another row"),
  ]);
  expect(await runSealing(await columns())).toEqual([
    "warning 1 secrets of app_private.integration_secrets.sealed cannot be opened: A sealed value of app_private.integration_secrets.sealed is bound to no row; it is not used.",
    "warning 1 secrets of app_private.integration_secrets.sealed are not bound to a row yet; see UNBOUND_SECRETS.",
    ...kept,
  ]);

  // A new key: bound texts stay bound.
  await query("delete from app_private.webhook_secrets where sealed not like 'v2:%'");
  await query("update app_private.integration_secrets set sealed = $2 where integration_id = $1", [
    place.row,
    createSeal([former]).seal("whsec_old", place),
  ]);
  expect(await runSealing([])).toEqual([
    `info 1 secrets of app_private.integration_secrets.sealed were sealed ${done}`,
  ]);
  await query("update app_private.bound_columns set since = now() - interval '25 hours'");
  expect(await columns()).toEqual([]);
});

test("reseals every column that is declared as sealed", async () => {
  expect(
    await query(
      `select c.table_schema || '.' || c.table_name as relation, c.column_name as name from information_schema.columns c
       where c.column_name ~ '(^|_)sealed(_|$)' and c.table_schema like 'app\\_%' and c.data_type = 'text'
         -- Of a consent that takes minutes.
         and c.column_name <> 'sealed_verifier'
       order by 1, 2`,
    ),
  ).toEqual(await query("select relation, name from app_private.sealed_columns order by 1, 2"));
});

test("events of the clock: open houses, promotions, deposits and tasks, once each, also of many, and not of archived projects", async () => {
  const eventsSince = async () =>
    Object.fromEntries(
      (
        await query(
          "select name, count(*)::int as n from app_public.events where name ~ '\\.(started|ended|due|overdue)$' group by name",
        )
      ).map(({ name, n }) => [name, n]),
    );
  // As if they were last reported an hour ago.
  const hourAgo = () => query("update app_private.clock_steps set told_at = now() - interval '1 hour'");
  await hourAgo();
  const ago = (minutes: number) => new Date(Date.now() - minutes * 60_000).toISOString();
  const make = (field: string, input: object) => world.owen.get(mutationOf(field), { input });
  await make("createOpenHouse", {
    projectId: project.id,
    title: "On",
    startsAt: ago(10),
    endsAt: ago(-60),
    format: "IN_PERSON",
  });
  await make("createOpenHouse", {
    projectId: project.id,
    title: "Over",
    startsAt: ago(30),
    endsAt: ago(10),
    format: "IN_PERSON",
  });
  await make("createOpenHouse", {
    projectId: project.id,
    title: "To come",
    startsAt: ago(-10),
    endsAt: ago(-60),
    format: "IN_PERSON",
  });
  await query(
    `insert into app_public.tasks (project_id, title, due_at) select $1, 'T' || n, now() - interval '5 minutes' from generate_series(1, 1200) n`,
    [project.id],
  );
  await query(
    `insert into app_public.tasks (project_id, title, due_at, status) select $1, 'Done', now() - interval '5 minutes', 'OPEN'`,
    [project.id],
  );
  await query("update app_public.tasks set status = 'COMPLETED' where title = 'Done'");
  await make("createPromotion", {
    projectId: project.id,
    title: "Free parking",
    kind: "GIFT",
    startsAt: ago(20),
    endsAt: ago(5),
  });
  const old = await createProject(world.owen, { organizationId: world.harbour.id, title: "Over and done" });
  await query(
    "insert into app_public.tasks (project_id, title, due_at) values ($1, 'Left', now() - interval '5 minutes')",
    [old.id],
  );
  await world.owen.get(`mutation ($id: ID!) { updateProject(input: { id: $id, status: ARCHIVED }) { id } }`, {
    id: old.id,
  });
  await run("clock_steps__tell");
  expect(await eventsSince()).toEqual({
    "open_house.started": 2,
    "open_house.ended": 1,
    "promotion.started": 1,
    "promotion.ended": 1,
    "task.overdue": 1200,
  });
  await run("clock_steps__tell");
  expect((await eventsSince())["task.overdue"]).toBe(1200);
  const [event] = await query(
    "select actor_type, changes, data ->> 'status' as status, data ->> 'title' as title, sequence is not null as numbered from app_public.events where name = 'open_house.ended'",
  );
  expect(event).toEqual({
    actor_type: "SYSTEM",
    changes: { status: ["ACTIVE", "ENDED"] },
    status: "ENDED",
    title: "Over",
    numbered: true,
  });
  // By the date of the project: in Toronto the day begins at 4 or 5 o'clock UTC.
  const lead = (await make("createLead", { projectId: project.id, name: "Dora" })).createLead.id;
  const [{ today }] = await query("select (now() at time zone 'America/Toronto')::date::text as today");
  const deposit = async (dueAt: string) =>
    (await make("createDeposit", { leadId: lead, title: dueAt, amount: "100.00", dueAt })).createDeposit.id;
  const [due, later] = [await deposit(today), await deposit("2999-01-01")];
  await query("update app_private.clock_steps set told_at = now() - interval '2 days'");
  await run("clock_steps__tell");
  expect(
    await query("select subject_id, name from app_public.events where name ~ '^deposit\\.(due|overdue)$'"),
  ).toEqual([{ subject_id: due, name: "deposit.due" }]);
  expect(later).not.toBe(due);
  const { createWebhook } = await world.olga.get(mutationOf("createWebhook"), {
    input: {
      organizationId: world.summit.id,
      url: "https://93.184.215.14/",
      events: ["deposit.overdue", "promotion.ended"],
    },
  });
  expect(createWebhook.id).toEqual(expect.any(String));
});

test("expires holds in batches, so that nobody waits long under a backlog", async () => {
  const holds = 120;
  await query(
    `insert into app_public.units (project_id, title, status, price) select $1, 'H' || n, 'AVAILABLE', 1 from generate_series(1, $2::int) n`,
    [project.id, holds],
  );
  await query(
    "select app_private.take_claim(id, null, 'HOLD', 'hold', uuidv7(), now() + interval '1 hour') from app_public.units where project_id = $1",
    [project.id],
  );
  await query(
    "update app_hidden.claims set expires_at = now() - interval '1 minute' where project_id = $1 and released_at is null",
    [project.id],
  );
  const [{ n }] = await query("select app_private.expire_due(50) as n");
  expect(n).toBe(50);
  expect(await count("app_public.units where status = 'HELD'")).toBe(holds - 50);
  await run("deadlines__settle");
  expect(await count("app_public.units where status = 'HELD'")).toBe(0);

  // Each takes so long that a reader stops waiting: readers see the stored state, and later ones do not wait
  // either.
  await query(
    `create function app_private.expire_slowly(id uuid) returns void language plpgsql as $$ begin perform pg_sleep(0.002); end $$`,
  );
  await query("insert into app_private.deadline_kinds values ('slow', 'app_private.expire_slowly')");
  await query(
    "insert into app_hidden.deadlines (kind, record_id, due_at) select 'slow', uuidv7(), now() - interval '1 minute' from generate_series(1, $1::int)",
    [many],
  );
  const title = async () =>
    (await world.owen.get(`query ($id: ID!) { project(id: $id) { title } }`, { id: project.id })).project
      .title;
  expect(await Promise.all(Array.from({ length: 30 }, title))).toEqual(Array(30).fill("By the Clock"));
  const left = await count("app_hidden.deadlines");
  expect(left).toBeGreaterThan(many / 2);
  const { updateProject } = await world.owen.get(
    `mutation ($id: ID!) { updateProject(input: { id: $id, title: "Behind" }) { title } }`,
    { id: project.id },
  );
  expect(updateProject.title).toBe("Behind");
  await query("delete from app_hidden.deadlines");
  await query(
    "insert into app_hidden.deadlines (kind, record_id, due_at) values ('slow', uuidv7(), now() - interval '1 minute')",
  );
  // Later the backlog is processed, on any connection.
  await until(
    async () => (await title(), count("app_hidden.deadlines")),
    (behind) => behind === 0,
  );
});

test("partitions of events are created in advance, once, and the partitioned table is analyzed", async () => {
  const partitions = () => query("select relation::text, ends_at from app_private.event_partitions()");
  const before = await partitions();
  // As if the quarter of the next-to-last partition had begun.
  const [then, last] = before.slice(-2);
  await query(
    `do $$ begin
       alter table app_public.events detach partition ${last.relation};
       drop table ${last.relation};
       alter table app_public.events detach partition ${then.relation};
       execute format('alter table app_public.events attach partition ${then.relation} for values from (%L) to (maxvalue)',
         app_private.first_id(app_private.quarter_after('${then.ends_at.toISOString()}'::timestamptz - interval '6 months')));
     end $$`,
  );
  await run("events__partition");
  expect(await partitions()).toEqual(before);
  // Autovacuum only analyzes partitions.
  const statistics = await query(
    "select distinct tablename as name from pg_stats where inherited and schemaname like 'app\\_%' order by 1",
  );
  expect(statistics).toEqual([{ name: "events" }, { name: "search_texts" }]);
  await run("events__partition");
  expect(await partitions()).toEqual(before);
});
