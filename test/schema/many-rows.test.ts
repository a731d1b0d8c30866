/** What makes many rows cheap obeys the same rules as a single row. */
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
/** Each test begins a transaction that the next one, or the end, takes back. */
beforeEach(async () => {
  await client.query("rollback; begin");
});

/** A unit as a function of the service completes it; `changed` are columns with SQL values. */
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

test("a unit that was completed by its writer is checked against every rule", async () => {
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
  // What keys and checks of the table say, they say as ever.
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

test("conditions of states follow the rows that say them", async () => {
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
  // As long as a record is in the state, whatever else changes.
  expect(
    await refusal(client.query("update app_public.units set title = 'V' where status = 'OFF_MARKET'")),
  ).toMatchObject({
    code: "BAD_USER_INPUT",
    field: "view",
  });
});

test("events that are numbered as they are written keep the order, without gaps, beside others", async () => {
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

test("a numbered event is never numbered anew, and what it says never changes", async () => {
  for (const change of ["sequence = sequence + 1", "sequence = null", "data = '{}'", "name = 'x'"]) {
    await client.query("savepoint before");
    await expect(client.query(`update app_public.events set ${change}`)).rejects.toThrow(
      "events are never changed or deleted",
    );
    await client.query("rollback to before");
  }
  await client.query("update app_public.events set dispatched_at = now()");
});
