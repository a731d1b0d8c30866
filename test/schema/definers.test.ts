/**
 * Functions that run with more rights than their caller, called by a stranger, by a visitor and by tokens that are restricted,
 * with ids and rows of another organization, and with rows that never were. Generated from the catalog: of whatever function there
 * is, nothing of the other organization comes back, is changed, or is locked.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { startDefinerCalls, type DefinerCalls } from "../harness/definerCalls.ts";

let calls: DefinerCalls;
beforeAll(async () => {
  calls = await startDefinerCalls();
});
afterAll(() => calls?.world.end());

test("no call by somebody else gives, changes or locks anything of theirs", async () => {
  const found: Record<string, string> = {};
  let made = 0;
  for (const definer of calls.definers) {
    const { faults, made: some } = await calls.faultsOf(definer);
    made += some;
    for (const [what, more] of faults) found[`${definer.signature}: ${what}`] = more;
  }
  expect(made).toBeGreaterThan(5000);
  expect(found).toEqual({});
}, 300_000);

test("what a function of the service asks of the policies is what they say", async () => {
  const { world } = calls;
  const { client } = world;
  const { rows: kinds } = await client.query<{ subject: string; relation: string }>(
    "select subject, format('app_public.%I', table_name) as relation from app_hidden.record_types where to_regclass(format('app_public.%I', table_name)) is not null order by 1",
  );
  const { rows: members } = await client.query<{ id: string }>(
    "select user_id as id from app_public.organization_user_connections where organization_id = any ($1)",
    [Object.values(world.organizations)],
  );
  const viewers = [...members.map(({ id }) => id), world.stranger];
  const say = (sees: string, subject: string, relation: string) =>
    client.query<{ id: string }>(`select id from ${relation} where ${sees}($1, id) order by id limit 200`, [
      subject,
    ]);
  const different: string[] = [];
  let seen = 0;
  for (const viewer of viewers) {
    await client.query("rollback; begin");
    await client.query("select set_config('plat.user_id', $1, true)", [viewer]);
    for (const { subject, relation } of kinds) {
      const said = await say("app_private.viewer_sees_subject", subject, relation);
      await client.query("savepoint owner; set local role plat_user");
      const policies = await say("app_hidden.sees_subject", subject, relation);
      await client.query("rollback to owner");
      seen += policies.rows.length;
      if (JSON.stringify(said.rows) !== JSON.stringify(policies.rows)) different.push(`${subject} ${viewer}`);
    }
  }
  await client.query("rollback");
  expect(kinds.length).toBeGreaterThan(40);
  expect(seen).toBeGreaterThan(500);
  expect(different).toEqual([]);
});
