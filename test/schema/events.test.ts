import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { Client, Pool } from "pg";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let ada: string;
/** Organizations with a project each. */
const homes: { organization: string; project: string }[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  ada = await people.person("Ada");
  for (const name of ["North", "South", "West"]) {
    const organization = await people.organization(name, { [ada]: "OWNER" });
    const { rows } = await people.owner.query<{ id: string }>(
      "insert into app_public.projects (organization_id, title, status) values ($1, $2, 'SELLING') returning id",
      [organization, `${name} View`],
    );
    homes.push({ organization, project: rows[0]!.id });
  }
});

afterAll(async () => {
  await people.end();
  await database.drop();
});

const insertLeads =
  "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, $2::int) n";

async function connect(): Promise<Client> {
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  return client;
}

async function sequences(organization: string, after = "0"): Promise<number[]> {
  const { rows } = await people.owner.query<{ sequence: string }>(
    "select sequence from app_public.events where organization_id = $1 and sequence > $2 order by sequence",
    [organization, after],
  );
  return rows.map(({ sequence }) => Number(sequence));
}

const upTo = (last: number): number[] => Array.from({ length: last }, (_, i) => i + 1);

describe("a statement that changes many rows", () => {
  /** The number of statements, including those of triggers and functions, that use the events during the insert. */
  async function eventStatements(rows: number): Promise<number> {
    const client = await connect();
    let count = 0;
    client.on("notice", ({ message }) => {
      if (/Query Text:.*event/s.test(message?.split(/\n\w[^\n]*\(cost=/, 1)[0] ?? "")) count += 1;
    });
    try {
      await client.query(
        `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_nested_statements = on;
         set auto_explain.log_level = notice; set client_min_messages = notice`,
      );
      await client.query(insertLeads, [homes[0]!.project, rows]);
    } finally {
      await client.end();
    }
    return count;
  }

  test("writes and numbers its events with as many statements as one that changes a single row", async () => {
    const one = await eventStatements(1);
    expect(one).toBeGreaterThan(0);
    expect(await eventStatements(1000)).toBe(one);
    expect(one).toBeLessThanOrEqual(20);
  });

  test("gives each row its event with its own record", async () => {
    const { rows: made } = await people.owner.query<{ id: string }>(`${insertLeads} returning id`, [
      homes[0]!.project,
      1000,
    ]);
    const { rows } = await people.owner.query(
      `select count(*)::int as events, count(distinct e.subject_id)::int as subjects from app_public.events e
       join app_public.leads l on l.id = e.subject_id and l.name = e.data ->> 'name' where e.name = 'lead.created' and l.id = any ($1)`,
      [made.map(({ id }) => id)],
    );
    expect(rows).toEqual([{ events: 1000, subjects: 1000 }]);
  });
});

describe("the sequence of an organization", () => {
  test("has no gap at any time, while 50 writers commit and roll back and a reader follows", async () => {
    const before = await Promise.all(homes.map(({ organization }) => sequences(organization)));
    const last = before.map((list) => list.length);
    before.forEach((list) => expect(list).toEqual(upTo(list.length)));
    let writing = true;
    let committed = 0;

    async function writer(n: number): Promise<void> {
      const client = await connect();
      try {
        for (let round = 0; round < 6; round += 1) {
          const first = (n + round) % 3;
          await client.query("begin");
          await client.query(insertLeads, [homes[first]!.project, 1 + (n % 3)]);
          // Half of them also write to a second organization, in any order.
          const second = n % 2 === 0 ? (first + 1 + (n % 4 === 0 ? 1 : 0)) % 3 : null;
          if (second !== null) await client.query(insertLeads, [homes[second]!.project, 1]);
          const keeps = (n + round) % 4 !== 0;
          await client.query(keeps ? "commit" : "rollback");
          if (keeps) committed += 1 + (n % 3) + (second === null ? 0 : 1);
        }
      } finally {
        await client.end();
      }
    }

    let polls = 0;
    async function reader(): Promise<void> {
      for (let final = false; ; final = !writing) {
        for (const [i, { organization }] of homes.entries()) {
          const seen = await sequences(organization, String(last[i]));
          // New events follow the known ones, so no event can appear before the reader's position.
          expect(seen).toEqual(seen.map((_, n) => last[i]! + n + 1));
          last[i]! += seen.length;
        }
        polls += 1;
        if (final) return;
      }
    }

    const reading = reader();
    await Promise.all(upTo(50).map(writer)).finally(() => (writing = false));
    await reading;
    expect(polls).toBeGreaterThan(2);
    expect(last.reduce((a, b) => a + b) - before.flat().length).toBe(committed);
  });

  test("does not block: while a transaction with thousands of events stays open, others can commit theirs", async () => {
    const [long, short] = [await connect(), await connect()];
    const { organization, project } = homes[0]!;
    const before = (await sequences(organization)).length;
    try {
      await long.query("begin");
      await long.query(insertLeads, [project, 3000]);
      // A statement that would have to wait fails.
      await short.query("set lock_timeout = '1ms'");
      for (let n = 0; n < 3; n += 1) await short.query(insertLeads, [project, 2]);
      expect((await sequences(organization)).length).toBe(before + 6);
      await long.query("commit");
    } finally {
      await Promise.all([long.end(), short.end()]);
    }
    expect(await sequences(organization)).toEqual(upTo(before + 3006));
  });

  test("two transactions that write to two organizations in opposite order do not deadlock", async () => {
    const [a, b] = [await connect(), await connect()];
    const [north, south] = homes as [(typeof homes)[0], (typeof homes)[0]];
    try {
      for (let round = 0; round < 10; round += 1) {
        await Promise.all([a.query("begin"), b.query("begin")]);
        await Promise.all([
          a.query(insertLeads, [north.project, 1]),
          b.query(insertLeads, [south.project, 1]),
        ]);
        await Promise.all([
          a.query(insertLeads, [south.project, 1]),
          b.query(insertLeads, [north.project, 1]),
        ]);
        await expect(Promise.all([a.query("commit"), b.query("commit")])).resolves.toHaveLength(2);
      }
    } finally {
      await Promise.all([a.end(), b.end()]);
    }
    for (const { organization } of [north, south]) {
      const list = await sequences(organization);
      expect(list).toEqual(upTo(list.length));
    }
  });

  test("is assigned when a single statement and its settings are one transaction, too", async () => {
    const pool = new Pool({ connectionString: database.authenticatorUrl, max: 1 });
    const withPgClient = makeFusedAdaptor().createWithPgClient({ pool });
    try {
      const settings = {
        role: "plat_user",
        "plat.user_id": ada,
        "plat.channel": "API",
        "plat.request_id": "r-1",
      };
      const { rows } = await withPgClient(settings, (client) =>
        client.query<{ id: string }>({
          text: "insert into app_public.leads (project_id, name) values ($1, 'Fused') returning id",
          values: [homes[2]!.project],
        }),
      );
      const { rows: events } = await people.owner.query(
        "select sequence is not null as numbered, actor_id, actor_type, channel, request_id from app_public.events where subject_id = $1",
        [rows[0]!.id],
      );
      expect(events).toEqual([
        { numbered: true, actor_id: ada, actor_type: "USER", channel: "API", request_id: "r-1" },
      ]);
    } finally {
      await withPgClient.release?.();
      await pool.end();
    }
    const left = await people.owner.query("select from app_private.event_batches");
    expect(left.rowCount).toBe(0);
  });
});

describe("an event", () => {
  const refused = { code: "23001", message: "events are never changed or deleted" };

  test("cannot be changed, renumbered, deleted or truncated, not even by the owner", async () => {
    for (const sql of [
      "update app_public.events set data = '{}'",
      "update app_public.events set name = 'lead.deleted' where sequence = 1",
      "update app_public.events set actor_id = null, request_id = 'x'",
      "update app_public.events set sequence = sequence + 100000",
      "update app_public.events set sequence = null",
      "delete from app_public.events",
      "truncate app_public.events cascade",
    ])
      await expect(people.owner.query(sql)).rejects.toMatchObject(refused);
  });

  test("can only be marked as handed over", async () => {
    await people.owner.query("update app_public.events set dispatched_at = now() where sequence = 1");
    const { rows } = await people.owner.query(
      "select from app_public.events where dispatched_at is not null",
    );
    expect(rows.length).toBeGreaterThan(0);
  });

  test("cannot be written by viewers", async () => {
    for (const sql of ["delete from app_public.events", "update app_public.events set data = '{}'"])
      await expect(people.as(ada, sql)).rejects.toMatchObject({ code: "42501" });
  });
});

describe("partitions", () => {
  const step = async (client: Client | Pool = people.owner): Promise<string | null> =>
    (await client.query("select app_private.make_event_partitions() as step")).rows[0].step;
  const partitions = async () =>
    (
      await people.owner.query<{ relation: string; starts_at: Date | null; ends_at: Date | null }>(
        "select relation::text, starts_at, ends_at from app_private.event_partitions()",
      )
    ).rows;

  test("are contiguous from the first event, without an end; they are only accessible through the partitioned table", async () => {
    const all = await partitions();
    expect(await step()).toBeNull();
    expect([all[0]!.starts_at, all.at(-1)!.ends_at]).toEqual([null, null]);
    expect(all.slice(1).map((one) => one.starts_at)).toEqual(all.slice(0, -1).map((one) => one.ends_at));
    const { rows: now } = await people.owner.query("select now() as at");
    // This quarter and the next have a partition each.
    expect(all.filter(({ ends_at }) => ends_at && ends_at > now[0].at).length).toBeGreaterThanOrEqual(2);
    const indexes = async (relation: string) =>
      (
        await people.owner.query<{ text: string }>(
          "select regexp_replace(pg_get_indexdef(indexrelid), 'INDEX \\S+ ON \\S+', 'INDEX') as text from pg_index where indrelid = $1::regclass order by 1",
          [relation],
        )
      ).rows.map(({ text }) => text);
    for (const { relation } of all) {
      expect(await indexes(relation)).toEqual(await indexes(all[0]!.relation));
      await expect(people.as(ada, `select from ${relation}`)).rejects.toMatchObject({ code: "42501" });
      await expect(people.owner.query(`truncate ${relation}`)).rejects.toMatchObject({ code: "23001" });
    }
  });

  test("the last one gets an upper bound while others write and read; a lock that is not available immediately is retried later", async () => {
    // All in one partition, as if the task had not run for years.
    await people.owner.query(`do $$
      declare p record;
      begin
        for p in select * from app_private.event_partitions() loop
          execute format('alter table app_public.events detach partition %s', p.relation);
          if p.starts_at is not null then execute format('drop table %s', p.relation); end if;
        end loop;
        execute format('alter table app_public.events attach partition app_partitions.events_first for values from (%L) to (maxvalue)',
          app_private.first_id('2020-01-01 00:00Z'));
      end $$`);
    // Left by an aborted run: the bound is near, and would refuse events.
    await people.owner.query(`do $$ begin
      execute format('alter table app_partitions.events_first add constraint partition_end check (id < %L) not valid',
        app_private.first_id(now() + interval '1 hour'));
    end $$`);
    expect(await step()).toBe("app_partitions.events_first has no end yet");
    const { organization, project } = homes[1]!;
    const before = (await sequences(organization)).length;
    const reader = await connect();
    await reader.query("begin; select from app_public.events limit 1");
    await expect(step()).rejects.toMatchObject({ code: "55P03" });
    await reader.end();

    const work = { isDone: false, written: 0 };
    const write = async () => {
      const client = await connect();
      try {
        for (; !work.isDone; work.written += 2) await client.query(insertLeads, [project, 2]);
      } finally {
        await client.end();
      }
    };
    const writers = [write(), write()];
    const steps: string[] = [];
    const stepper = await connect();
    const notices: string[] = [];
    stepper.on("notice", ({ message }) => notices.push(message ?? ""));
    await stepper.query("set client_min_messages = debug1");
    /** Like the task: an unavailable lock is tried again. */
    const next = () =>
      step(stepper).catch((error: { code: string }) => {
        if (error.code !== "55P03") throw error;
        return "waited";
      });
    try {
      for (let done = await next(); done !== null; done = await next()) steps.push(done);
    } finally {
      work.isDone = true;
    }
    await Promise.all([...writers, stepper.end()]);
    // Its rows are not scanned again while the partitioned table is locked.
    expect(notices).toContain(
      'partition constraint for table "events_first" is implied by existing constraints',
    );
    expect(steps.map((text) => text.replace(/events_\w+/, "…").replace(/ at .*/, ""))).toEqual(
      expect.arrayContaining([
        "app_partitions.… ends",
        "app_partitions.… was read",
        "app_partitions.… ended",
      ]),
    );
    expect(await sequences(organization)).toEqual(upTo(before + work.written));
    expect((await partitions()).length).toBeGreaterThanOrEqual(2);
  });

  test("form one sequence: a page is read from their indexes in order, and a number exists once", async () => {
    const { organization } = homes[1]!;
    const later = (await partitions()).slice(1);
    const before = await sequences(organization);
    // Equal numbers of events in each later quarter.
    const client = await connect();
    await client.query("set session_replication_role = 'replica'");
    for (const [rest, { starts_at }] of later.entries())
      await client.query(
        `update app_public.events set id = uuidv7($1::timestamptz + interval '1 day' - clock_timestamp())
         where organization_id = $2 and sequence % $3 = $4`,
        [starts_at, organization, later.length + 1, rest],
      );
    await client.end();
    const { rows: places } = await people.owner.query(
      "select count(distinct tableoid)::int as n from app_public.events where organization_id = $1",
      [organization],
    );
    expect(places).toEqual([{ n: later.length + 1 }]);
    expect(await sequences(organization)).toEqual(before);
    const { rows: plan } = await people.owner.query(
      `explain select * from app_public.events where organization_id = '${organization}' order by organization_id, sequence limit 10`,
    );
    const text = plan.map((row) => row["QUERY PLAN"]).join("\n");
    expect(text).toContain("Merge Append");
    expect(text).not.toMatch(/Sort {2}\(|Seq Scan/);
    // The next number follows the last one, in any partition; a repeated one is refused.
    await people.owner.query(insertLeads, [homes[1]!.project, 1]);
    expect(await sequences(organization)).toEqual(upTo(before.length + 1));
    await expect(
      people.owner.query(
        `insert into app_public.events (stream_id, organization_id, sequence, name, subject_type, subject_id, actor_type, channel, data)
         select stream_id, organization_id, sequence, name, subject_type, subject_id, actor_type, channel, data from app_public.events
         where organization_id = $1 order by sequence desc limit 1`,
        [organization],
      ),
    ).rejects.toMatchObject({ code: "23505" });
  });
});

test("the triggers of every record match its present columns, comments and event names", async () => {
  const sources = () =>
    people.owner.query(
      `select p.proname, p.prosrc from pg_proc p join pg_namespace n on n.oid = p.pronamespace
       where n.nspname = 'app_private' and p.proname ~ '__event_(insert|update|delete)$' order by 1`,
    );
  const { rows: before } = await sources();
  await people.owner.query("select app_private.make_event_triggers()");
  expect((await sources()).rows).toEqual(before);
  const { rows: records } = await people.owner.query("select table_name from app_hidden.record_types");
  expect(before.length).toBe(records.length * 3);
});
