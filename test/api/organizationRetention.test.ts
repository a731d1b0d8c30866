import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { cast, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";

// How long an organization keeps what is over: its settings, who changes them, and what the daily sweep does by them.

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

const setting = `mutation ($input: UpdateOrganizationRetentionInput!) { updateOrganizationRetention(input: $input) {
  contractYears executionDays messageDays eventDays } }`;
const reading = `query ($id: ID!) { organization(id: $id) { retention { contractYears executionDays messageDays eventDays } } }`;
const defaults = { contractYears: 10, executionDays: 730, messageDays: 730, eventDays: 2555 };

/** What the task does, until nothing is left. */
async function sweep(batch = 20): Promise<number> {
  let calls = 0;
  for (let last: string | null = null; ; calls++) {
    const { rows }: { rows: { last: string | null }[] } = await world.owner.query(
      "select app_private.sweep_organizations($1, $2) as last",
      [last, batch],
    );
    last = rows[0]!.last;
    if (last === null) return calls;
  }
}

test("has defaults, which its members read, and owners and admins change within their limits", async () => {
  const { harbour, owen, ada } = world;
  const input = { organizationId: harbour.id, executionDays: 30 };
  const codes: Record<string, unknown> = {};
  for (const [who, person] of Object.entries(cast(world))) {
    const { organization } = await person.sees(reading, { id: harbour.id });
    const answer = who === "owner" || who === "admin" ? undefined : await person.refused(setting, { input });
    codes[who] = [organization?.retention?.contractYears ?? null, answer?.code ?? "OK"];
  }
  expect(codes).toEqual({
    owner: [10, "OK"],
    admin: [10, "OK"],
    member: [10, "FORBIDDEN"],
    seller: [null, "FORBIDDEN"],
    builder: [null, "FORBIDDEN"],
    outsider: [null, "FORBIDDEN"],
    anonymous: [null, "UNAUTHENTICATED"],
  });
  expect((await ada.get(setting, { input })).updateOrganizationRetention).toEqual({
    ...defaults,
    executionDays: 30,
  });
  for (const wrong of [{ executionDays: 29 }, { messageDays: 0 }, { eventDays: 364 }, { contractYears: 0 }])
    expect(await owen.refused(setting, { input: { organizationId: harbour.id, ...wrong } })).toMatchObject({
      code: "BAD_USER_INPUT",
    });
  expect((await owen.get(reading, { id: harbour.id })).organization.retention).toMatchObject({
    executionDays: 30,
  });
});

test("empties its events and deletes its executions that are older, in batches, and nobody else's", async () => {
  const { owner, harbour, summit, owen } = world;
  await createIn(owen)("createLeadNote", { leadId: world.leads.open.id, text: "Fresh." });
  await owner.query(
    `begin; set local session_replication_role = 'replica';
     update app_public.events set occurred_at = now() - interval '500 days' where name <> 'lead_note.created';
     commit`,
  );
  const emptied = async (id: string) =>
    (
      await owner.query(
        `select count(*) filter (where data = '{}' and changes is null and erased_at is not null)::int as empty, count(*)::int as all,
           max(sequence)::int as last from app_public.events where organization_id = $1`,
        [id],
      )
    ).rows[0];
  const before = await emptied(harbour.id);
  await sweep();
  expect(await emptied(harbour.id)).toEqual(before);
  await owen.get(setting, { input: { organizationId: harbour.id, eventDays: 365 } });
  await sweep(1);
  const after = await emptied(harbour.id);
  // The change of the setting is one more.
  expect(after).toEqual({ all: before.all + 1, last: before.last + 1, empty: before.all - 1 });
  expect((await emptied(summit.id)).empty).toBe(0);
  await sweep();
  expect(await emptied(harbour.id)).toEqual(after);
  // Who reads them finds that they were there, and since when they say nothing.
  const { events } = await owen.get(
    "query ($id: ID!) { events(filter: { organizationId: $id }, first: 1) { name data changes erasedAt } }",
    { id: harbour.id },
  );
  expect(events).toEqual([
    { name: "organization.created", data: {}, changes: null, erasedAt: expect.any(String) },
  ]);
});
