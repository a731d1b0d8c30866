/**
 * The clock of a sandbox organization: it moves all times in every table with rows of the organization, and no
 * others.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startTwoOrganizations, type TwoOrganizations } from "../harness/twoOrganizations.ts";

let world: TwoOrganizations;
beforeAll(async () => {
  world = await startTwoOrganizations();
});
afterAll(() => world?.end());

interface Relation {
  relation: string;
  condition: string;
  times: string[];
  days: string[];
}
// Whole days, because a rescission period ends with a day.
const days = 3;
const seconds = days * 86_400;

test("turning the clock moves all times of an organization, and none of others", async () => {
  const { client } = world;
  const organization = world.organizations.theirs;
  /** The times in the columns of the rows: seconds, then days. */
  const read = async ({ relation, condition, ...columns }: Relation, isTheirs: boolean) => {
    const values = [
      ...columns.times.map((name) => `extract(epoch from t."${name}")::float8`),
      ...columns.days.map((name) => `(t."${name}" - date '2000-01-01')::float8`),
    ];
    const { rows } = await client.query<{ values: (number | null)[] }>(
      `select array[${values.join(", ")}] as values from ${relation} t
         where (${condition.replaceAll("$1", `'${organization}'`)}) is ${isTheirs ? "" : "not"} true`,
    );
    return rows.map((row) => row.values);
  };
  const sorted = (rows: (number | null)[][]) =>
    rows.map((row) => row.map((value) => value?.toFixed(1)).join(" ")).toSorted();
  const { rows: relations } = await client.query<Relation>(
    "select relation::text, condition, times::text[], days::text[] from app_private.clock_relations()",
  );
  await client.query("begin");
  try {
    const before = [];
    for (const relation of relations)
      before.push({ relation, own: await read(relation, true), others: await read(relation, false) });
    await client.query("select app_private.age_organization($1, $2, $3)", [organization, seconds, days]);
    for (const { relation, own, others } of before) {
      const older = own.map((row) =>
        row.map((value, n) => value && value - (n < relation.times.length ? seconds : days)),
      );
      expect([relation.relation, sorted(await read(relation, true))]).toEqual([
        relation.relation,
        sorted(older),
      ]);
      expect([relation.relation, sorted(await read(relation, false))]).toEqual([
        relation.relation,
        sorted(others),
      ]);
    }
    expect(before.filter(({ own }) => own.length > 0).map(({ relation }) => relation.relation)).toEqual(
      expect.arrayContaining([
        "app_public.events",
        "app_public.reservations",
        "app_public.workflow_step_runs",
        "app_public.processor_charges",
        "app_public.personalization_discounts",
      ]),
    );
  } finally {
    await client.query("rollback");
  }
});
