/** Lists of deals with realistic numbers of rows, 60,000 offers beside others: they use an index and read few rows. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { loadOffers } from "../../bench/data/offers.ts";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { cost, explain } from "../harness/explain.ts";

let api: Api;
let owner: Person, member: Person, seller: Person;
let project: string, unit: string;

beforeAll(async () => {
  ({ api, owner, member, seller, project } = await startLargeOrganization(
    { leads: 6_000 },
    () => ({ leads: 500 }),
    async (client, organizations) => {
      await loadOffers(client, organizations.get("large")!, 60_000);
      await loadOffers(client, organizations.get("other")!, 5_000);
    },
  ));
  const { rows } = await api.owner.query(
    "select unit_id from app_public.offers where project_id = $1 limit 1",
    [project],
  );
  unit = rows[0]!.unit_id;
});
afterAll(() => api.stop());

const list =
  "query ($filter: OffersFilter) { offers(first: 50, filter: $filter) { id price status legalName manual } }";
const page =
  "query ($after: Cursor) { offersConnection(first: 50, after: $after) { nodes { id } pageInfo { endCursor } } }";

describe("the list of offers", () => {
  test("of an owner reads as many index rows as it returns", async () => {
    const plan = await explain(api, owner, list);
    expect(plan.indexes).toContain("offers_organization");
    expect(cost(plan, "offers")).toBeLessThanOrEqual(50);
  });

  test("scans each status separately", async () => {
    const plan = await explain(api, owner, list, { filter: { status: ["PENDING", "ACCEPTED"] } });
    expect(plan.indexes).toContain("offers_organization_status");
    expect(cost(plan, "offers")).toBeLessThanOrEqual(100);
  });

  test("uses the index of each requested project, and of a unit", async () => {
    const ofProject = await explain(api, owner, list, { filter: { projectIds: [project] } });
    expect(ofProject.indexes).toContain("offers_project");
    expect(cost(ofProject, "offers")).toBeLessThanOrEqual(50);
    expect(
      cost(await explain(api, owner, list, { filter: { unitIds: [unit] } }), "offers"),
    ).toBeLessThanOrEqual(200);
  });

  test("of a member reads the open projects one by one, and of the private ones only the member's deals", async () => {
    const plan = await explain(api, member, list);
    expect(plan.indexes).toContain("offers_project");
    expect(plan.indexes).toContain("offers_assignee");
    expect(cost(plan, "offers")).toBeLessThanOrEqual(10 * 50);
  });

  test("of an affiliated agency reads its own deals", async () => {
    for (const filter of [{}, { projectIds: [project] }]) {
      const plan = await explain(api, seller, list, { filter });
      expect(plan.indexes).toContain("offers_assignee");
      expect(cost(plan, "offers")).toBeLessThanOrEqual(10 * 50);
    }
  });

  test("of an affiliated agency by status reads the few of that status", async () => {
    const plan = await explain(api, seller, list, { filter: { status: ["PENDING"] } });
    const { rows } = await api.owner.query(
      "select count(*)::int as amount from app_public.offers where assignee_id = $1 and status = 'PENDING'",
      [seller.id],
    );
    expect(plan.indexes).toContain("offers_assignee_status");
    expect(cost(plan, "offers")).toBeLessThanOrEqual(rows[0].amount);
  });

  test("of a project reads a page, for every viewer", async () => {
    const ofProject = "query ($id: ID!) { project(id: $id) { offers(first: 50) { id } } }";
    expect(cost(await explain(api, owner, ofProject, { id: project }), "offers")).toBeLessThanOrEqual(51);
  });

  test("costs the same in the middle of the connection as at its beginning", async () => {
    let after: string | null = null;
    for (let i = 0; i < 3; i += 1) {
      expect(cost(await explain(api, owner, page, { after }), "offers")).toBeLessThanOrEqual(51);
      after = (await owner.get(page, { after })).offersConnection.pageInfo.endCursor;
    }
  });

  test("of a non-member reads nothing", async () => {
    const stranger = await api.signUp("Olga Outsider");
    expect(cost(await explain(api, stranger, list), "offers")).toBeLessThanOrEqual(0);
  });
});
