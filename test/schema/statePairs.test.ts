/**
 * State machines of units, lots and tasks: listed transitions succeed, by viewers or only by the service; all others
 * are refused.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let ids: Record<string, string>;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  const owen = await people.person("Owen");
  const organization = await people.organization("Harbour Homes", { [owen]: "OWNER" });
  const insert = async (text: string, values: unknown[]): Promise<string> =>
    (await people.owner.query<{ id: string }>(`${text} returning id`, values)).rows[0]!.id;
  const project = await insert(
    "insert into app_public.projects (organization_id, title) values ($1, 'Harbour View')",
    [organization],
  );
  ids = {
    units: await insert(
      "insert into app_public.units (project_id, title, price) values ($1, 'Home', 400000)",
      [project],
    ),
    lots: await insert("insert into app_public.lots (project_id, number, price) values ($1, '1', 50000)", [
      project,
    ]),
    tasks: await insert("insert into app_public.tasks (organization_id, title) values ($1, 'Call')", [
      organization,
    ]),
  };
});
afterAll(async () => {
  await people.end();
  await database.drop();
});

test.each([
  ["units", "unit"],
  ["lots", "lot"],
  ["tasks", "task"],
])("%s", async (table, subject) => {
  const { rows: steps } = await people.owner.query<{ from: string; to: string; by_service: boolean }>(
    `select from_state as "from", to_state as "to", by_service from app_hidden.transitions where subject = $1 and from_state is not null`,
    [subject],
  );
  const { rows: values } = await people.owner.query<{ value: string }>(
    `select value from app_public.${subject}_status_values`,
  );
  const states = values.map(({ value }) => value);
  const client = await people.owner.connect();
  /** The outcome of a transition, which is rolled back. */
  const attempt = async (from: string, to: string, service: string): Promise<string> => {
    await client.query("begin; set local session_replication_role = replica");
    await client.query(`update app_public.${table} set status = $2 where id = $1`, [ids[table], from]);
    await client.query("set local session_replication_role = origin");
    await client.query("select set_config('plat.service', $1, true)", [service]);
    const outcome = await client
      .query(`update app_public.${table} set status = $2 where id = $1`, [ids[table], to])
      .then(
        () => "passed",
        (error) => {
          const { code, allowedTransitions } = JSON.parse(error.detail);
          return `${code}: ${allowedTransitions}`;
        },
      );
    await client.query("rollback");
    return outcome;
  };
  try {
    const found: string[] = [];
    const wanted: string[] = [];
    for (const from of states)
      for (const to of states.filter((state) => state !== from))
        for (const service of ["", "on"]) {
          const step = steps.find((s) => s.from === from && s.to === to);
          const byHand = steps.filter((s) => s.from === from && !s.by_service).map((s) => s.to);
          const passes = step !== undefined && (service === "on" || !step.by_service);
          found.push(`${from} → ${to} ${service}: ${await attempt(from, to, service)}`);
          wanted.push(
            `${from} → ${to} ${service}: ${passes ? "passed" : `INVALID_TRANSITION: ${byHand.toSorted().join(",")}`}`,
          );
        }
    expect(found).toEqual(wanted);
    expect(found.filter((line) => line.endsWith("passed")).length).toBeGreaterThan(5);
  } finally {
    client.release();
  }
});
