/** Rewriting quarters of emptied events: each step is killed once, while others write and read. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { loadEventYears, partitionYears } from "../../bench/data/eventYears.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";

let database: TestDatabase;
let people: People;
let outbox: Outbox;
let owner: string, organization: string;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  outbox = await createOutbox();
  const [member, seller, buyer] = await Promise.all(["Max", "Sue", "Bo"].map(people.person));
  owner = await people.person("Olive");
  const client = await connect();
  await partitionYears(client, 2);
  ({ organization } = await loadEventYears(
    client,
    { owner, member: member!, seller: seller!, buyer: buyer! },
    { events: 50_000, projects: 5, years: 2, bytes: 1_500 },
  ));
  // Executes a step of the task, with organizations that keep their events for a year.
  await client.query(
    "set session_replication_role = replica; update app_public.organizations set event_retention_days = 365, archives_events = false; reset session_replication_role",
  );
  for (let after: string | null = null, first = true; first || after !== null; first = false)
    after = (await client.query("select app_private.sweep_organizations($1, 10) as after", [after])).rows[0]
      .after;
  await client.query("vacuum (analyze) app_public.events");
  await client.end();
}, 600_000);
afterAll(async () => {
  await people.end();
  await outbox.remove();
  await database.drop();
});

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: database.ownerUrl });
  client.on("error", () => {});
  await client.connect();
  return client;
}
const query = async (text: string, values: unknown[] = []) => (await people.owner.query(text, values)).rows;
const step = async (client: Pick<Client, "query">): Promise<string | null> =>
  (await client.query("select app_private.rewrite_events(400, 1000000) as step")).rows[0].step;

/** The partitions by name, with their size in bytes. */
const partitions = async (): Promise<Record<string, number>> =>
  Object.fromEntries(
    (
      await query(
        "select relation::text as name, pg_relation_size(relation)::int as bytes from app_private.event_partitions()",
      )
    ).map(({ name, bytes }) => [name, bytes]),
  );
/** All events, in any partition. */
const contents = async () =>
  (
    await query(
      "select count(*)::int as n, sum(hashtextextended(e::text, 0)) as checksum from app_public.events e",
    )
  )[0];
const waits = (error: { code?: string }) => {
  if (error.code !== "55P03") throw error;
  return "waits";
};

/** Executes a step that is killed before its commit, and then again. */
async function stepAfterKill(): Promise<string | null> {
  const killed = await connect();
  const { rows } = await killed.query("select pg_backend_pid() as pid");
  await killed.query("begin");
  await step(killed);
  await query("select pg_terminate_backend($1, 5000)", [rows[0].pid]);
  await expect(killed.query("commit")).rejects.toThrow(/terminat|closed|not queryable/);
  await killed.end();
  return step(people.owner as unknown as Client);
}

let oldest: string;

test("a quarter is rewritten in steps, each of which may be killed, while its events change", async () => {
  const sizes = await partitions();
  [oldest] = Object.keys(sizes) as [string];
  const [, other] = Object.keys(sizes);
  const ids = (await query(`select id from ${oldest} order by id`)).map(({ id }) => id);
  /** Statements that change events of the quarter, as erasure and the deletion of an organization do. */
  const changes = [
    [
      "select app_private.set_erasing(true)",
      `update app_public.events set data = '{"erased": 1}' where id = '${ids[3]}'`,
    ],
    [
      "select app_private.set_erasing(true)",
      `update app_public.events set data = '{"erased": 2}' where id = '${ids.at(-2)}'`,
    ],
    ["select app_private.set_removing()", `delete from app_public.events where id = '${ids[7]}'`],
    [
      "select app_private.set_erasing(true)",
      `update app_public.events set data = '{"erased": 3}' where id = '${ids[3]}'`,
    ],
    [
      `insert into app_public.events (id, stream_id, organization_id, sequence, name, subject_type, subject_id, actor_type, channel, data)
         values (uuidv7(app_private.time_of_id('${ids[5]}') - clock_timestamp()), '${organization}', '${organization}', 900001, 'lead.updated', 'lead', '${organization}', 'SYSTEM', 'SYSTEM', '{}')`,
    ],
  ];
  const change = async (statements: string[]) => {
    const client = await connect();
    await client.query("begin");
    for (const text of statements) await client.query(text);
    await client.query("commit");
    await client.end();
  };
  // An uncommitted change during the copying, of an event that was copied before.
  const slow = await connect();
  await slow.query("begin; select app_private.set_erasing(true)");

  const steps: (string | null)[] = [];
  for (let isOver = false; !isOver;) {
    const done = await stepAfterKill();
    steps.push(done);
    if (steps.length === 2)
      await slow.query(`update app_public.events set data = '{"erased": 4}' where id = '${ids[1]}'`);
    const next = changes.shift();
    if (next) await change(next);
    isOver = done?.includes("to its end") ?? true;
  }
  expect(changes).toEqual([]);
  // The step does not wait for its writer or a reader, and keeps what was done.
  expect(await step(people.owner as unknown as Client).catch(waits)).toBe("waits");
  await slow.query("commit");
  await slow.end();
  const reader = await connect();
  await reader.query("begin; select from app_public.events limit 1");
  expect(await step(people.owner as unknown as Client).catch(waits)).toBe("waits");
  await reader.end();

  const before = await contents();
  steps.push(await stepAfterKill());
  expect(await contents()).toEqual(before);
  steps.push(await stepAfterKill());
  expect(await contents()).toEqual(before);
  const name = oldest.split(".")[1]!;
  expect(steps.at(0)).toBe(`${oldest} is being rewritten`);
  expect(steps.slice(-2)).toEqual([`${name} was exchanged`, `${name} was dropped as it was before`]);

  const now = await partitions();
  expect(Object.keys(now)).toEqual(Object.keys(sizes));
  expect(now[oldest]!).toBeLessThan(sizes[oldest]! / 2);
  expect(now[other!]).toBe(sizes[other!]);
  expect(
    await query(`select data from ${oldest} where id = any ($1) order by id`, [[ids[1], ids[3], ids.at(-2)]]),
  ).toEqual([{ data: { erased: 4 } }, { data: { erased: 3 } }, { data: { erased: 2 } }]);
  expect(await query(`select from ${oldest} where id = $1`, [ids[7]])).toEqual([]);
  expect(await query(`select count(*)::int as n from ${oldest} where sequence = 900001`)).toEqual([{ n: 1 }]);
});

test("the rewritten quarter is like the others: same indexes and triggers, inaccessible to viewers, events cannot be changed or emptied", async () => {
  const shapes = await query(
    "select app_private.shape_of(relation) as shape from app_private.event_partitions()",
  );
  expect(new Set(shapes.map(({ shape }) => shape)).size).toBe(1);
  const triggers = await query(
    `select p.relation::text, array_agg(t.tgname::text order by t.tgname) as names from app_private.event_partitions() p
     join pg_trigger t on t.tgrelid = p.relation group by 1`,
  );
  expect(new Set(triggers.map(({ names }) => names.join())).size).toBe(1);
  expect(
    await query(
      "select relname from pg_class where relname ~ '^events.*(rewrite|former)' and relnamespace = 'app_partitions'::regnamespace",
    ),
  ).toEqual([]);
  for (const user of [owner, null])
    await expect(people.as(user, `select from ${oldest}`)).rejects.toMatchObject({ code: "42501" });
  for (const text of [`update ${oldest} set data = '{}'`, `delete from ${oldest}`, `truncate ${oldest}`])
    await expect(query(text)).rejects.toMatchObject({ code: "23001" });
  await expect(people.as(owner, "select app_private.rewrite_events()")).rejects.toMatchObject({
    code: "42501",
  });
});

test("a migration that changes events meanwhile makes the rewriting start again", async () => {
  const client = await connect();
  try {
    const begun = await step(client);
    const name = /events_\w+(?= is being rewritten)/.exec(begun!)![0];
    expect(await step(client)).toMatch(`${name} was copied up to`);
    await client.query("alter table app_public.events add column added int");
    expect(await step(client)).toBe(`the rewriting of ${name} begins again`);
    await client.query("alter table app_public.events drop column added");
  } finally {
    await client.end();
  }
});

test("while another process makes or rewrites partitions, neither is done", async () => {
  const other = await connect();
  await other.query("begin; select pg_advisory_xact_lock(7528006)");
  const busy = {
    code: "55P03",
    message: "another process makes the partitions of events",
  };
  await expect(step(people.owner)).rejects.toMatchObject(busy);
  await expect(query("select app_private.make_event_partitions()")).rejects.toMatchObject(busy);
  await other.end();
});

test("the task frees the space of all emptied quarters, and finds nothing the next time", async () => {
  const sizes = await partitions();
  const before = await contents();
  const run = async () => {
    await query("select graphile_worker.add_job('events__rewrite')");
    const log = (await runJobs(database.ownerUrl, outbox.provider)).join("\n");
    expect(log).not.toMatch(/error/i);
    return log;
  };
  expect(await run()).toMatch(/was exchanged/);
  const now = await partitions();
  expect(await contents()).toEqual(before);
  const emptied = await query(
    "select relation::text as name from app_private.event_partitions() p where p.ends_at < now() - interval '370 days'",
  );
  expect(emptied.length).toBeGreaterThan(1);
  for (const { name } of emptied.filter((quarter) => quarter.name !== oldest))
    expect(now[name]!).toBeLessThan(sizes[name]! / 2);
  expect(await run()).not.toMatch(/exchanged|rewritten/);
  expect(await partitions()).toEqual(now);
});
