/** Recorded uses of the schema by an organization. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { until } from "../harness/until.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld(undefined, { usageDelayMs: 1 });
});
afterAll(() => world.stop());

const usageOf = async (person: World["owen"], id: string, days?: number): Promise<string[]> => {
  const query =
    "query ($id: ID!, $days: Int) { organization(id: $id) { schemaUsage(days: $days) { coordinate } } }";
  const { organization } = await person.get(query, { id, days });
  return organization?.schemaUsage?.map((use: { coordinate: string }) => use.coordinate) ?? [];
};

test("fields, arguments, literals and input types that its members and tokens use are listed for its admins", async () => {
  const { owen, ada, max, olga, harbour, summit } = world;
  const document = `query ($filter: UnitsFilter) {
    leads(filter: { status: [NEW] }, first: 3) { ...Named }
    units(filter: $filter) { id }
  }
  fragment Named on Lead { firstName }`;
  await max.get(document, {});
  const used = await until(
    () => usageOf(owen, harbour.id),
    (found) => found.includes("Lead.firstName"),
  );
  expect(used).toEqual(
    expect.arrayContaining([
      "Query.leads",
      "Query.leads(filter:)",
      "Query.leads(first:)",
      "LeadsFilter.status",
      "LeadStatus.NEW",
      "Query.units(filter:)",
      "UnitsFilter",
      "Unit.id",
    ]),
  );
  expect(used).not.toContain("Lead.lastName");
  expect(await usageOf(ada, harbour.id)).toContain("Lead.firstName");
  expect(await usageOf(ada, harbour.id, 0)).toEqual([]);
  expect(await usageOf(max, harbour.id)).toEqual([]);
  expect(await usageOf(olga, harbour.id)).toEqual([]);
  expect(await usageOf(olga, summit.id)).not.toContain("Lead.firstName");
});

test("uses by a token for one organization count for that one; refused documents do not count", async () => {
  const { api, owen, olga, summit, harbour } = { ...world, api: world };
  const other = await owen.get(
    `mutation ($input: CreateOrganizationInput!) { createOrganization(input: $input) { id } }`,
    { input: { name: "Second Homes" } },
  );
  const robot = await programOf(api, owen, { organizationId: harbour.id });
  await robot.get("{ leads { lastName } }");
  await olga.refused("{ leads { shoeSize } }");
  await olga.get("{ units { number } }");
  await until(
    async () => [await usageOf(owen, harbour.id), await usageOf(olga, summit.id)],
    ([ofHarbour, ofSummit]) => ofHarbour?.includes("Lead.lastName") && ofSummit?.includes("Unit.number"),
  );
  expect(await usageOf(owen, other.createOrganization.id)).not.toContain("Lead.lastName");
  expect(await usageOf(olga, summit.id)).not.toContain("Lead.shoeSize");
  // A token restricted to reading leads sees as little as a member.
  const reader = await programOf(api, owen, { scopes: ["lead.read"] });
  expect(await usageOf(reader, harbour.id)).toEqual([]);
});
