/** mergeLeads and unmergeLead: leads of one person are merged without loss, and separated again. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { negotiate, type Table } from "../harness/negotiations.ts";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
let table: Table;
let serial = 0;
beforeAll(async () => {
  world = await startPortfolio();
  table = negotiate(world);
});
afterAll(() => world.stop());

const lead = async (input: object = {}, by = world.owen, project = world.project): Promise<string> =>
  (await createLead(by, { projectId: project.id, name: `Dana ${++serial}`, ...input })).id;
const MERGE = `mutation ($input: MergeLeadsInput!) { mergeLeads(input: $input) { id } }`;
const UNMERGE = `mutation ($input: UnmergeLeadInput!) { unmergeLead(input: $input) { id mergedIntoId } }`;
const merge = (intoId: string, ids: string[], more = {}, by = world.owen) =>
  by.get(MERGE, { input: { intoId, ids, ...more } });
const unmerge = (id: string, by = world.owen) => by.get(UNMERGE, { input: { id } });
const refusal = async (intoId: string, ids: string[], by = world.owen) =>
  (await by.refused(MERGE, { input: { intoId, ids } })).code;

/** All rows in the database that refer to a lead, except for versions and times of changes. */
async function rowsOf(ids: readonly string[]): Promise<unknown> {
  const { rows: tables } = await world.owner.query(
    `select format('%I.%I', n.nspname, c.relname) as name from pg_class c join pg_namespace n on n.oid = c.relnamespace
       where c.relkind = 'r' and n.nspname in ('app_public', 'app_private') and c.relname not like 'event%'
         and c.relname not in ('reads', 'access_versions', 'data_versions', 'search_texts') order by 1`,
  );
  const found: Record<string, unknown> = {};
  for (const { name } of tables) {
    const { rows } = await world.owner.query(
      `select to_jsonb(t) - '{version,updated_at,status_changed_at,search_text}'::text[] as row from ${name} t
         where to_jsonb(t)::text ~ $1 order by to_jsonb(t)::text`,
      [ids.join("|")],
    );
    if (rows.length > 0) found[name] = rows.map(({ row }) => row);
  }
  return found;
}

test("the kept lead gets records and missing values; unmerging restores everything", async () => {
  const first = await lead({ email: `first${serial}@example.com`, tags: ["loft"] });
  const second = await lead({
    phone: `+1416555${2000 + ++serial}`,
    company: "Dana Inc",
    tags: ["loft", "view"],
  });
  const unitId = await table.unit();
  await table.create("createReservation", { unitId, leadId: second, acceptedTerms: true });
  await table.create("createLeadNote", { leadId: second, text: "Wants a view." });
  await table.create("createTask", { leadId: second, title: "Call back" });
  await table.create("createContact", { leadId: second, name: "Spouse" });
  await table.create("createPersonalization", { leadId: second, unitId });
  await world.owner.query(
    `insert into app_private.lead_external_ids (organization_id, system, external_id, lead_id, project_id)
       select organization_id, 'crm', 'X-' || id, id, project_id from app_public.leads where id = $1`,
    [second],
  );
  await table.create("createLeadNote", { leadId: first, text: "First." });
  const before = await rowsOf([first, second]);

  await merge(first, [second]);
  expect(await table.read("lead", second, "id")).toBeNull();
  expect(
    await table.read(
      "lead",
      first,
      "status company email phone tags notes { text } tasks { title } contacts { name } reservations { status }",
    ),
  ).toMatchObject({
    status: "RESERVED",
    company: "Dana Inc",
    tags: ["loft", "view"],
    notes: expect.arrayContaining([{ text: "Wants a view." }, { text: "First." }]),
    tasks: [{ title: "Call back" }],
    contacts: [{ name: "Spouse" }],
    reservations: [{ status: expect.any(String) }],
  });
  const names = async () =>
    (
      await world.owen.get(
        `query ($id: ID!) { events(orderBy: [ID_DESC], filter: { subjectId: $id }) { name changes } }`,
        { id: second },
      )
    ).events;
  expect((await names())[0]).toMatchObject({
    name: "lead.merged",
    changes: { mergedIntoId: [null, first], deletedAt: [null, expect.any(String)] },
  });
  const { leads } = await world.owen.get(
    `query ($id: ID!) { leads(filter: { includeDeleted: true, projectIds: [$id] }) { id mergedIntoId mergedInto { id } } }`,
    { id: world.project.id },
  );
  expect(leads.find(({ id }: { id: string }) => id === second)).toEqual({
    id: second,
    mergedIntoId: first,
    mergedInto: { id: first },
  });

  expect((await unmerge(second)).unmergeLead).toEqual({ id: second, mergedIntoId: null });
  expect(await rowsOf([first, second])).toEqual(before);
  expect((await names())[0].name).toBe("lead.unmerged");
});

test("deals go to the assignee of the kept lead, and back", async () => {
  const first = await lead({ assigneeId: world.max.id });
  const second = await lead({ assigneeId: world.owen.id });
  const unassigned = await lead();
  for (const leadId of [second, unassigned])
    await table.create("createReservation", { unitId: await table.unit(), leadId, acceptedTerms: true });
  await table.create("createPersonalization", { leadId: second, unitId: await table.unit() });
  const before = await rowsOf([first, second, unassigned]);
  await merge(first, [second, unassigned]);
  const { rows } = await world.owner.query(
    `select assignee_id from app_public.reservations where lead_id = $1
       union all select assignee_id from app_public.personalizations where lead_id = $1`,
    [first],
  );
  expect(rows).toEqual(Array.from({ length: 3 }, () => ({ assignee_id: world.max.id })));
  await unmerge(unassigned);
  await unmerge(second);
  expect(await rowsOf([first, second, unassigned])).toEqual(before);
});

test("unmerging keeps later changes on the kept lead", async () => {
  const first = await lead();
  const second = await lead({ company: "Dana Inc", email: `since${serial}@example.com`, subscribed: true });
  await table.create("createLeadNote", { leadId: second, text: "Before." });
  await merge(first, [second]);
  await table.create("createLeadNote", { leadId: first, text: "Since." });
  const change = `mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`;
  await world.owen.get(change, { input: { id: first, company: "Other Inc", subscribed: false } });
  await unmerge(second);
  expect(await table.read("lead", first, "company email notes { text }")).toEqual({
    company: "Other Inc",
    email: null,
    notes: [{ text: "Since." }],
  });
  // A person who unsubscribed one of the leads has unsubscribed both.
  expect(await table.read("lead", second, "company subscribed notes { text }")).toEqual({
    company: "Dana Inc",
    subscribed: false,
    notes: [{ text: "Before." }],
  });
});

test("several leads can be merged at once; the last merge is undone first", async () => {
  const [first, second, third, fourth] = [await lead(), await lead(), await lead(), await lead()];
  await table.create("createLeadNote", { leadId: first, text: "One." });
  await merge(second, [first]);
  await merge(third, [second, fourth]);
  const { code, existingId } = await world.owen.refused(UNMERGE, { input: { id: first } });
  expect([code, existingId]).toEqual(["CONFLICT", second]);
  expect(await table.read("lead", third, "notes { text }")).toEqual({ notes: [{ text: "One." }] });
  await unmerge(second);
  expect(await table.read("lead", second, "notes { text }")).toEqual({ notes: [{ text: "One." }] });
  await unmerge(first);
  expect(await table.read("lead", first, "notes { text }")).toEqual({ notes: [{ text: "One." }] });
  expect(await table.read("lead", second, "notes { text }")).toEqual({ notes: [] });
  expect((await world.owen.refused(UNMERGE, { input: { id: first } })).code).toBe("NOT_FOUND");
});

test("a dry run returns the effects and changes nothing", async () => {
  const [first, second] = [await lead(), await lead()];
  const before = await rowsOf([first, second]);
  await merge(first, [second], { dryRun: true });
  expect(await rowsOf([first, second])).toEqual(before);
});

test("requires permission to change all of the leads", async () => {
  const { owen, ada, max, olga, anonymous } = world;
  const [one, other] = [await lead(), await lead()];
  const mine = await lead({}, max, world.quiet);
  const hers = await lead({}, world.mia, world.quiet);
  expect(await refusal(one, [one])).toBe("BAD_USER_INPUT");
  expect(await refusal(one, [])).toBe("BAD_USER_INPUT");
  expect(await refusal(one, [mine])).toBe("CONFLICT");
  expect(await refusal(one, [other], olga)).toBe("NOT_FOUND");
  expect(await refusal(one, [other], anonymous)).toBe("UNAUTHENTICATED");
  // Members who only see their own leads do not learn of a colleague's.
  expect(await refusal(mine, [hers], max)).toBe("NOT_FOUND");
  expect(await refusal(hers, [mine], max)).toBe("NOT_FOUND");
  expect(await refusal(one, [other], await programOf(world, owen, { scopes: ["lead.read"] }))).toBe(
    "FORBIDDEN",
  );
  const buyer = await lead();
  await owen.get(`mutation ($input: ConvertLeadInput!) { convertLead(input: $input) { id } }`, {
    input: { leadId: buyer, unitId: await table.unit() },
  });
  expect(await refusal(one, [buyer])).toBe("CONFLICT");
  await merge(buyer, [one], {}, ada);
  expect((await max.refused(UNMERGE, { input: { id: mine } })).code).toBe("NOT_FOUND");
  expect((await olga.refused(UNMERGE, { input: { id: one } })).code).toBe("NOT_FOUND");
  expect((await anonymous.refused(UNMERGE, { input: { id: one } })).code).toBe("UNAUTHENTICATED");
  const reader = await programOf(world, owen, { scopes: ["lead.read"] });
  expect((await reader.refused(UNMERGE, { input: { id: one } })).code).toBe("FORBIDDEN");
  await unmerge(one, ada);
  expect(await table.read("lead", one, "id")).toEqual({ id: one });
});
