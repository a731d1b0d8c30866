/** Optimizations for many rows follow the same rules as changes of a single row. */
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, refusal, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let client: Client;
const homes: { organization: string; project: string; plan: string; lot: string }[] = [];

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  const ada = await people.person("Ada");
  const id = async (sql: string, values: unknown[]) =>
    (await people.owner.query<{ id: string }>(`${sql} returning id`, values)).rows[0]!.id;
  for (const name of ["North", "South"]) {
    const organization = await people.organization(name, { [ada]: "OWNER" });
    const project = await id(
      "insert into app_public.projects (organization_id, title, currency) values ($1, $2, 'CAD')",
      [organization, name],
    );
    const plan = await id(
      "insert into app_public.floor_plans (project_id, title, bedrooms, hoa_fee) values ($1, 'Plan', 2, 300)",
      [project],
    );
    const lot = await id("insert into app_public.lots (project_id, number) values ($1, '1')", [project]);
    homes.push({ organization, project, plan, lot });
  }
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await people.end();
  await database.drop();
});
/** Each test begins a transaction that the next one rolls back. */
beforeEach(async () => {
  await client.query("rollback; begin");
});

/**
 * A unit with completed columns, as a function of the service inserts it; `changed` are columns with SQL
 * values.
 */
async function insert(changed: Record<string, string> = {}, home = homes[0]!): Promise<void> {
  const columns: Record<string, string> = {
    project_id: `'${home.project}'`,
    organization_id: `'${home.organization}'`,
    currency: "'CAD'",
    title: "'U'",
    status: "'AVAILABLE'",
    price: "100.00",
    original_list_price: "100.00",
    listing_date: "current_date",
    market_since: "now()",
    market_before: "'0'",
    floor_plan_id: `'${home.plan}'`,
    lot_id: `'${home.lot}'`,
    effective_bedrooms: "2",
    effective_hoa_fee: "300.00",
    ...changed,
  };
  await client.query(
    `insert into app_public.units (${Object.keys(columns).join(", ")}) values (${Object.values(columns).join(", ")})`,
  );
}

test("a unit with completed columns is checked against every rule", async () => {
  await insert();
  await insert({
    bedrooms: "3",
    effective_bedrooms: "3",
    construction_status: "'COMPLETED'",
    move_in_ready: "true",
  });
  for (const wrong of [
    { currency: "'USD'" },
    { price: "100.001" },
    { hoa_fee: "1.001", effective_hoa_fee: "1.001" },
    { effective_bedrooms: "3" },
    { bedrooms: "3" },
    { effective_hoa_fee: "null" },
    { effective_orientation: "'N'" },
    { move_in_ready: "true" },
    { construction_status: "'DELIVERED'" },
    { listing_date: "null" },
    { original_list_price: "null" },
    { market_since: "null" },
    { address: "row('1 King St', null, null, null, null, null, null, null)" },
  ] as Record<string, string>[]) {
    await client.query("savepoint before");
    await expect([wrong, await insert(wrong).catch((error) => error.message)]).toEqual([
      wrong,
      "a unit was inserted past its rules",
    ]);
    await client.query("rollback to before");
  }
  for (const change of [
    `update app_public.lots set deleted_at = now() where id = '${homes[0]!.lot}'`,
    `update app_public.projects set status = 'ARCHIVED' where id = '${homes[0]!.project}'`,
  ]) {
    await client.query(`savepoint before; ${change}`);
    await expect(insert()).rejects.toThrow("a unit was inserted past its rules");
    await client.query("rollback to before");
  }
  // Keys and check constraints of the table apply as usual.
  for (const wrong of [
    { organization_id: `'${homes[1]!.organization}'` },
    { floor_plan_id: `'${homes[1]!.plan}'` },
    { lot_id: `'${homes[1]!.lot}'` },
  ] as Record<string, string>[]) {
    await client.query("savepoint before");
    await expect(insert(wrong)).rejects.toThrow(/foreign key/);
    await client.query("rollback to before");
  }
  expect(await refusal(insert({ status: "'SOLD'" }))).toMatchObject({ code: "INVALID_TRANSITION" });
});

test("conditions of states follow the rows that define them", async () => {
  const create = (status: string, price: number | null) =>
    client.query("insert into app_public.units (project_id, title, status, price) values ($1, 'U', $2, $3)", [
      homes[0]!.project,
      status,
      price,
    ]);
  await create("OFF_MARKET", null);
  await client.query("savepoint before");
  expect(await refusal(create("SOLD", 1))).toMatchObject({ code: "INVALID_TRANSITION" });
  await client.query("rollback to before");
  await client.query(
    `insert into app_hidden.transitions (subject, from_state, to_state) values ('unit', null, 'SOLD');
     select app_private.make_state_triggers()`,
  );
  await create("SOLD", 1);
  await client.query(
    `insert into app_hidden.transition_requirements (subject, to_state, column_name, message)
     values ('unit', 'OFF_MARKET', 'view', 'Say what is seen.');
     select app_private.make_state_triggers()`,
  );
  expect(await refusal(create("OFF_MARKET", null))).toMatchObject({ code: "BAD_USER_INPUT", field: "view" });
  await client.query("rollback to before");
  await client.query(
    `insert into app_hidden.transition_requirements (subject, to_state, column_name, message)
     values ('unit', 'OFF_MARKET', 'view', 'Say what is seen.');
     select app_private.make_state_triggers()`,
  );
  // They apply to every change while a record is in the state.
  expect(
    await refusal(client.query("update app_public.units set title = 'V' where status = 'OFF_MARKET'")),
  ).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "view",
  });
});

test("events that are numbered when they are written keep the order, without gaps, beside others", async () => {
  await client.query("select set_config('plat.numbers_at_once', '', true)");
  const many = (home: { project: string }, title: string) =>
    client.query(
      "insert into app_public.units (project_id, title) select $1, $2 || i from generate_series(1, 3) i",
      [home.project, title],
    );
  await many(homes[0]!, "a");
  await client.query("select set_config('plat.numbers_at_once', 'on', true)");
  await many(homes[0]!, "b");
  await client.query(
    "insert into app_public.units (project_id, title) select p, 'c' || i from generate_series(1, 2) i, unnest($1::uuid[]) p",
    [homes.map(({ project }) => project)],
  );
  await client.query("select set_config('plat.numbers_at_once', '', true)");
  await many(homes[0]!, "d");
  await client.query("commit");
  const { rows } = await client.query(
    `select e.organization_id, e.sequence - min(e.sequence) over (partition by e.organization_id) as place, e.data ->> 'title' as title
     from app_public.events e where e.subject_type = 'unit' order by e.organization_id, e.sequence`,
  );
  const of = ({ organization }: { organization: string }) =>
    rows
      .filter((row) => row.organization_id === organization)
      .map(({ place, title }) => [Number(place), title]);
  const titles = ["a1", "a2", "a3", "b1", "b2", "b3", "c1", "c2", "d1", "d2", "d3"];
  expect(of(homes[0]!)).toEqual(titles.map((title, place) => [place, title]));
  expect(of(homes[1]!)).toEqual([
    [0, "c1"],
    [1, "c2"],
  ]);
  const counters = await client.query(
    `select c.last_sequence = (select max(e.sequence) from app_public.events e where e.stream_id = c.stream_id) as exact,
       (select count(*) from app_public.events e where e.stream_id = c.stream_id) = c.last_sequence as gapless
     from app_private.event_counters c`,
  );
  expect(counters.rows.every(({ exact, gapless }) => exact && gapless)).toBe(true);
  expect((await client.query("select from app_private.event_batches")).rowCount).toBe(0);
});

test("for a statement that changes many rows, each changed row has its event with the changes, and its search text", async () => {
  const { project } = homes[0]!;
  await client.query(
    "insert into app_public.units (project_id, title, number) select $1, 'Row ' || i, 'R' || i from generate_series(1, 20) i",
    [project],
  );
  // One row first, so that the triggers' plan is that for one row.
  await client.query("update app_public.units set title = 'Row 1 again' where number = 'R1'");
  await client.query(
    "update app_public.units set title = title || case when number in ('R2', 'R3') then '' else ' anew' end where number like 'R%'",
  );
  // Events become readable at commit, with their numbers.
  await client.query("set constraints all immediate");
  const { rows } = await client.query(
    `select u.number, t.names, array(select e.changes -> 'title' from app_public.events e where e.subject_id = u.id
       and e.name = 'unit.updated' order by e.id) as changes
     from app_public.units u join app_private.search_units t using (id) where u.number in ('R1', 'R2', 'R20') order by u.number`,
  );
  expect(rows).toEqual([
    {
      number: "R1",
      names: " row 1 again anew r 1 ",
      changes: [
        ["Row 1", "Row 1 again"],
        ["Row 1 again", "Row 1 again anew"],
      ],
    },
    { number: "R2", names: " row 2 r 2 ", changes: [] },
    { number: "R20", names: " row 20 anew r 20 ", changes: [["Row 20", "Row 20 anew"]] },
  ]);
});

test("an event is written once, with its number, and nothing is pending afterwards", async () => {
  await insert();
  await client.query("update app_public.units set title = 'V' where title = 'U'");
  await client.query("set constraints all immediate");
  const { rows } = await client.query(
    `select sum(n_tup_upd)::int as updated, sum(n_tup_ins) > 1 as "areInserted",
       (select count(*)::int from app_private.pending_events) as pending
     from pg_stat_xact_user_tables where relid in (select relid from pg_partition_tree('app_public.events'))`,
  );
  expect(rows).toEqual([{ updated: 0, areInserted: true, pending: 0 }]);
});

test("a numbered event never changes, including its number", async () => {
  for (const change of ["sequence = sequence + 1", "sequence = null", "data = '{}'", "name = 'x'"]) {
    await client.query("savepoint before");
    await expect(client.query(`update app_public.events set ${change}`)).rejects.toThrow(
      "events are never changed or deleted",
    );
    await client.query("rollback to before");
  }
  await client.query("update app_public.events set dispatched_at = now()");
});

test("reservations that expire at the same time end together, except for locked ones and those that cannot end", async () => {
  const { organization } = homes[1]!;
  const { owner } = people;
  const { rows: projects } = await owner.query(
    `insert into app_public.projects (organization_id, title, status, currency, reservation_fee)
     values ($1, 'By the hour', 'SELLING', 'CAD', 500) returning id`,
    [organization],
  );
  const project = projects[0].id;
  await owner.query(
    `with units as (insert into app_public.units (project_id, title, status, price)
        select $1, 'Home ' || n, 'AVAILABLE', 400000 + n from generate_series(1, 8) n returning id, title),
      leads as (insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, 8) n
        returning id, name)
      insert into app_public.reservations (project_id, unit_id, lead_id, accepted_terms)
        select $1, u.id, l.id, true from units u join leads l on substr(l.name, 6) = substr(u.title, 6)`,
    [project],
  );
  // Records each statement that changes them, and adds a rule that one of them violates.
  await owner.query(
    `create table public.statements (relation text);
     create function public.count_statement() returns trigger language plpgsql security definer as
       $$ begin insert into public.statements values (tg_table_name); return null; end $$;
     create function public.refuse() returns trigger language plpgsql as $$ begin raise 'stuck'; end $$;
     create trigger _999_refuse before update on app_public.units for each row
       when (old.title = 'Home 8' and new.status = 'AVAILABLE') execute function public.refuse();
     ${["units", "leads", "reservations", "deposits"]
       .map(
         (name) =>
           `create trigger _999_count after update on app_public.${name} for each statement execute function public.count_statement();`,
       )
       .join("\n")}`,
  );
  const statements = async () =>
    Object.fromEntries(
      (
        await owner.query(
          "with gone as (delete from public.statements returning relation) select relation, count(*)::int from gone group by 1",
        )
      ).rows.map(({ relation, count }) => [relation, count]),
    );
  const expire = (titles: string[]) =>
    owner.query(
      `update app_hidden.claims c set expires_at = now() - interval '1 minute' from app_public.units u
       where u.id = c.unit_id and u.title = any ($1) and c.released_at is null`,
      [titles],
    );
  const settle = async () => (await owner.query("select app_private.expire_due() as n")).rows[0].n;
  const states = async () =>
    (
      await owner.query(
        `select u.title, u.status as unit, u.price::float, r.status as reservation, l.status as lead,
           (select d.status from app_public.deposits d where d.reservation_id = r.id) as fee,
           exists (select from app_hidden.deadlines d join app_hidden.claims c on c.id = d.record_id
             where c.subject_id = r.id) as pending
         from app_public.reservations r join app_public.units u on u.id = r.unit_id join app_public.leads l on l.id = r.lead_id
         where r.project_id = $1 order by u.title`,
        [project],
      )
    ).rows;
  const begun = await states();
  const over = (row: (typeof begun)[number]) => ({
    ...row,
    unit: "AVAILABLE",
    reservation: "EXPIRED",
    lead: "NEW",
    fee: "CANCELLED",
    pending: false,
  });
  expect(new Set(begun.map(({ unit, lead, reservation }) => `${unit} ${lead} ${reservation}`))).toEqual(
    new Set(["RESERVED RESERVED PENDING"]),
  );

  await statements();
  await expire(["Home 1", "Home 2", "Home 3"]);
  expect(await settle()).toBe(3);
  expect(await statements()).toEqual({ units: 1, leads: 1, reservations: 1, deposits: 1 });
  expect(await states()).toEqual([...begun.slice(0, 3).map(over), ...begun.slice(3)]);
  const { rows: events } = await owner.query(
    `select array_agg(name order by sequence) as names, count(distinct subject_id)::int as subjects
     from app_public.events where organization_id = $1 group by transaction_id order by transaction_id desc limit 1`,
    [organization],
  );
  expect(events).toEqual([
    {
      names: [
        "deposit.cancelled",
        "lead.status_changed",
        "reservation.expired",
        "unit.status_changed",
      ].flatMap((name) => [name, name, name]),
      subjects: 12,
    },
  ]);

  // The fourth lead and the fifth home are locked.
  await client.query("select from app_public.leads where name = 'Lead 4' and project_id = $1 for update", [
    project,
  ]);
  await client.query("select from app_public.units where title = 'Home 5' and project_id = $1 for update", [
    project,
  ]);
  await expire(["Home 4", "Home 5", "Home 6", "Home 7"]);
  expect(await settle()).toBe(2);
  const worked = await states();
  expect(worked).toEqual([
    ...begun.slice(0, 3).map(over),
    ...begun.slice(3, 5),
    ...begun.slice(5, 7).map(over),
    begun[7],
  ]);
  await client.query("rollback");
  await owner.query(
    "update app_hidden.deadlines set due_at = now() - interval '1 minute' where due_at < now() + interval '1 second'",
  );
  expect(await settle()).toBe(2);
  expect(await states()).toEqual([...begun.slice(0, 7).map(over), begun[7]]);

  // The eighth cannot expire: it is postponed, without blocking the others.
  await owner.query(
    `insert into app_public.units (project_id, title, status, price) values ($1, 'Home 9', 'AVAILABLE', 1)`,
    [project],
  );
  await owner.query(
    "select app_private.take_claim(id, null, 'HOLD', 'hold', uuidv7(), now() + interval '1 hour') from app_public.units where title = 'Home 9'",
  );
  await expire(["Home 8", "Home 9"]);
  await settle();
  expect((await owner.query("select status from app_public.units where title = 'Home 9'")).rows).toEqual([
    { status: "AVAILABLE" },
  ]);
  expect((await states())[7]).toEqual(begun[7]);
  expect((await owner.query("select failures from app_hidden.deadlines")).rows).toEqual([{ failures: 1 }]);
  expect(await settle()).toBe(0);
  await owner.query("drop trigger _999_refuse on app_public.units; delete from app_hidden.deadlines");
});

/** Rows that this transaction has read from the table or its indexes, whichever were used. */
async function tuplesRead(table: string): Promise<number> {
  const { rows } = await client.query<{ n: string }>(
    `select sum(pg_stat_get_xact_tuples_returned(r.oid) + pg_stat_get_xact_tuples_fetched(r.oid)) as n
       from (select $1::regclass::oid as oid
         union all select i.indexrelid from pg_index i where i.indrelid = $1::regclass) r`,
    [table],
  );
  return Number(rows[0]!.n);
}

test("a batch of deadlines reads only its own rows, not all that are due at that time or later", async () => {
  await client.query("set local session_replication_role = replica");
  // Ids of deleted claims: processing one of them only deletes its deadline.
  const fill = (due: string) =>
    client.query(
      `insert into app_hidden.deadlines (kind, record_id, due_at, organization_id)
           select 'claim', gen_random_uuid(), ${due}, $1 from generate_series(1, 20000)`,
      [homes[1]!.organization],
    );
  await fill("now() - interval '1 hour'");
  await fill("now() + interval '1 hour' * random()");
  await client.query("analyze app_hidden.deadlines");
  const before = await tuplesRead("app_hidden.deadlines");
  const { rows } = await client.query(
    "select app_private.expire_deadlines($1, true, 50, interval '1 minute') as settled",
    [homes[1]!.organization],
  );
  expect(rows[0].settled).toBe(50);
  // Two scans of 50, and the deletions.
  const read = (await tuplesRead("app_hidden.deadlines")) - before;
  expect(read).toBeGreaterThan(50);
  expect(read).toBeLessThan(1_000);
});

test("an import reads the leads and units of the file, not all others", async () => {
  const [home, other] = homes as [(typeof homes)[0], (typeof homes)[0]];
  await client.query("set local session_replication_role = replica");
  await client.query(
    `insert into app_public.leads (organization_id, project_id, name, first_name, last_name, email)
       select h.organization::uuid, h.project::uuid, 'Ann Archer', 'Ann', 'Archer', 'ann' || n || '@example.com'
         from generate_series(1, 10000) n cross join (values ($1, $2), ($3, $4)) h (organization, project)`,
    [home.organization, home.project, other.organization, other.project],
  );
  await client.query(
    `insert into app_public.units (organization_id, project_id, currency, title, number)
       select $1, $2, 'CAD', 'Unit ' || n, 'N' || n from generate_series(1, 10000) n`,
    [other.organization, other.project],
  );
  await client.query(
    `insert into app_public.units (organization_id, project_id, currency, title, number) values ($1, $2, 'CAD', 'Unit', 'N1')`,
    [home.organization, home.project],
  );
  await client.query(
    "set local session_replication_role = origin; analyze app_public.leads, app_public.units",
  );
  const ada = (
    await client.query(
      "select user_id from app_public.organization_user_connections where organization_id = $1",
      [home.organization],
    )
  ).rows[0].user_id;
  await client.query(
    "select set_config('role', 'plat_user', true), set_config('plat.user_id', $1, true), set_config('plat.channel', 'API', true)",
    [ada],
  );
  const imported = async (
    operation: string,
    header: string[],
    columns: string[],
    rows: string[][],
    call: string,
  ) => {
    await client.query("discard temp");
    await client.query("select app_hidden.begin_import($1, $2, $3)", [operation, home.project, header]);
    await client.query("select app_hidden.add_import_rows($1, $2, $3)", [
      operation,
      columns,
      JSON.stringify(rows.map((row, i) => [i + 2, null, ...row])),
    ]);
    return (await client.query(`select (r).* from (select ${call} as r) x`, [home.project])).rows[0];
  };

  const leadsBefore = await tuplesRead("app_public.leads");
  expect(
    await imported(
      "importLeads",
      ["Name", "Email"],
      ["name", "email"],
      [
        ["Bea Baker", "ann7@example.com"],
        ["Cy Cook", "cy@example.com"],
      ],
      "app_public.import_leads($1, null, update_existing => true)",
    ),
  ).toMatchObject({ created_count: 1, failed_count: 0 });
  expect((await tuplesRead("app_public.leads")) - leadsBefore).toBeLessThan(500);

  const unitsBefore = await tuplesRead("app_public.units");
  expect(
    await imported(
      "importUnits",
      ["Number", "Title"],
      ["number", "title"],
      [["N1", "Renamed"]],
      "app_public.import_units($1, null, update_existing => true)",
    ),
  ).toMatchObject({ updated_count: 1, failed_count: 0 });
  expect((await tuplesRead("app_public.units")) - unitsBefore).toBeLessThan(500);
});

test("a phone number that many leads have does not slow down further ones, in any organization", async () => {
  await client.query("set local session_replication_role = replica");
  const number = "+14165550199";
  for (const { organization, project } of homes)
    await client.query(
      `insert into app_public.leads (organization_id, project_id, name, email, phone)
         select $1, $2, 'Lead ' || n, 'lead' || n || '@example.com', $3 from generate_series(1, 5000) n`,
      [organization, project, number],
    );
  await client.query("set local session_replication_role = origin");
  const readBy = async (text: string, values: unknown[]) => {
    const before = await tuplesRead("app_public.leads");
    await client.query(text, values);
    return (await tuplesRead("app_public.leads")) - before;
  };
  const { organization, project } = homes[0]!;
  const further = `insert into app_public.leads (organization_id, project_id, name, phone)
    select $1, $2, 'Further ' || n, $3 from generate_series(1, $4::int) n`;
  expect(await readBy(further, [organization, project, number, 1])).toBeLessThan(50);
  expect(await readBy(further, [organization, project, number, 100])).toBeLessThan(2_000);
  const { rows } = await client.query<{ id: string }>(
    "insert into app_public.leads (organization_id, project_id, name) values ($1, $2, 'Other') returning id",
    [organization, project],
  );
  const changed = await readBy("update app_public.leads set phone = $2 where id = $1", [rows[0]!.id, number]);
  expect(changed).toBeLessThan(50);
});

test("leads of one transaction that take turns read few of the turns before, and few turns are kept", async () => {
  const { project } = homes[0]!;
  await client.query("update app_public.projects set lead_assignment = 'ROUND_ROBIN' where id = $1", [
    project,
  ]);
  const before = await tuplesRead("app_private.lead_turns");
  const add = (amount: number) =>
    client.query(
      "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, $2::int) n",
      [project, amount],
    );
  await add(2_000);
  expect((await tuplesRead("app_private.lead_turns")) - before).toBeLessThan(2_000 * 500);
  const kept = async () =>
    (await client.query<{ n: number }>("select count(*)::int as n from app_private.lead_turns")).rows[0]!.n;
  expect(await kept()).toBeLessThan(60);
  // Turns that were passed over by those of an import are deleted by the next one.
  for (let n = 0; n < 3; n += 1) await client.query("select app_private.next_turns($1, 500)", [project]);
  await add(10);
  expect(await kept()).toBeLessThan(120);
});

test("writing to a record reads nothing of the catalog", async () => {
  const { project, organization } = homes[0]!;
  const { rows } = await client.query(
    "select user_id from app_public.organization_user_connections where organization_id = $1",
    [organization],
  );
  await client.query("select set_config('plat.user_id', $1, true), set_config('role', 'plat_user', true)", [
    rows[0].user_id,
  ]);
  const scans = async () =>
    (
      await client.query(
        `select relname, seq_scan + idx_scan as scans from pg_stat_xact_sys_tables
         where relname in ('pg_attribute', 'pg_constraint', 'pg_description', 'pg_attrdef') order by 1`,
      )
    ).rows;
  const create = async (n: number) =>
    (
      await client.query(
        "select (app_public.create_lead(jsonb_build_object('project_id', $1::uuid, 'name', $2::text))).id",
        [project, `Lead ${n}`],
      )
    ).rows[0].id;
  // Statements are planned once per connection; after some executions the generic plan is used.
  for (let n = 0; n < 8; n += 1) await create(n);
  const before = await scans();
  await create(8);
  expect(await scans()).toEqual(before);
});
