/** Plans of purchases with realistic numbers of rows, for the sales team and for a buyer: how many rows are read. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { loadPurchases } from "../../bench/data/purchases.ts";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { cost, explain } from "../harness/explain.ts";

const BUYERS = 40_000;
let api: Api;
let owner: Person, member: Person, seller: Person, buyer: Person, small: Person;
let project: string;

beforeAll(async () => {
  ({ api, owner, member, seller, project } = await startLargeOrganization(
    { leads: BUYERS },
    async ({ signUp }) => {
      const names = ["Bea Buyer", "Max Member", "Sue Owner", "Sid Seller"];
      const [bea, max, sue, sid] = (await Promise.all(names.map(signUp))) as [Person, Person, Person, Person];
      [buyer, small] = [bea, max];
      return { leads: 2_000, viewers: { owner: sue.id!, member: small.id!, seller: sid.id! } };
    },
    (client) => loadPurchases(client, { buyer: buyer.id! }),
  ));
});
afterAll(() => api.stop());

const list = "query ($filter: BuyersFilter) { buyers(first: 50, filter: $filter) { id fullName status } }";

describe("the list of purchases", () => {
  test("of an owner reads as many index rows as it returns", async () => {
    const plan = await explain(api, owner, list);
    expect(plan.indexes).toContain("buyers_organization");
    expect(cost(plan, "buyers")).toBeLessThanOrEqual(50);
  });

  test("scans each status separately", async () => {
    const plan = await explain(api, owner, list, { filter: { status: ["FIRM", "IN_REVIEW"] } });
    expect(plan.indexes).toContain("buyers_organization_status");
    expect(cost(plan, "buyers")).toBeLessThanOrEqual(100);
  });

  test("uses the index of each requested project", async () => {
    const plan = await explain(api, owner, list, { filter: { projectIds: [project] } });
    expect(plan.indexes).toContain("buyers_project");
    expect(cost(plan, "buyers")).toBeLessThanOrEqual(50);
  });

  test("of a small portfolio reads few rows beside a large one", async () => {
    const plan = await explain(api, small, list);
    expect(plan.indexes).toContain("buyers_project");
    expect(cost(plan, "buyers")).toBeLessThanOrEqual(10 * 50);
  });

  test("of a member and of a seller reads their own along their index", async () => {
    for (const person of [member, seller]) {
      const plan = await explain(api, person, list);
      expect(plan.indexes).toContain("buyers_assignee");
      expect(cost(plan, "buyers")).toBeLessThanOrEqual(10 * 50);
    }
  });

  test("finds words by their index", async () => {
    const plan = await explain(api, owner, list, { filter: { query: "ada c4ca" } });
    expect(cost(plan, "buyers")).toBeLessThanOrEqual(50);
  });

  test("of a buyer reads their own purchase, and nothing for non-members", async () => {
    expect(cost(await explain(api, buyer, list), "buyers")).toBeLessThanOrEqual(2);
    const stranger = await api.signUp("Olga Outsider");
    expect(cost(await explain(api, stranger, list), "buyers")).toBeLessThanOrEqual(0);
  });
});

test("related records of a list are read by key, in the same plan", async () => {
  const { nodes, touched } = await explain(
    api,
    owner,
    `{ buyers(first: 50) { id assigneeOrganization { id } personalization { id } unit { id activeReservation { id } buyer { id } images { id } }
       lead { id buyer { id } } deposits { id } } }`,
  );
  expect(nodes.filter((node) => node["Function Name"]?.match(/^(buyers|units|leads)_/))).toEqual([]);
  expect(nodes.filter((node) => node["Node Type"] === "BitmapAnd")).toEqual([]);
  expect(touched("leads")).toBeLessThanOrEqual(2 * 50);
});

test("a page of the connection costs the same in the middle as at the beginning", async () => {
  const page = `query ($after: Cursor) { buyersConnection(first: 50, after: $after) { nodes { id } pageInfo { endCursor } } }`;
  let after: string | null = null;
  for (let i = 0; i < 4; i += 1) {
    expect(cost(await explain(api, owner, page, { after }), "buyers")).toBeLessThanOrEqual(51);
    after = (await owner.get(page, { after })).buyersConnection.pageInfo.endCursor;
  }
});

test("finds buyers by account, and their deals by id", async () => {
  const plan = await explain(
    api,
    buyer,
    "{ viewer { purchases { id project { title } unit { title } assignee { fullName } } } }",
  );
  expect(cost(plan, "buyers")).toBeLessThanOrEqual(5);
  // So few rows that the whole table is read at once.
  expect(plan.touched("users")).toBeLessThanOrEqual(20);
});

test("the account of a buyer is visible to the team by its purchase, without reading all of them", async () => {
  const { viewer } = await buyer.get("{ viewer { purchases { id } } }");
  const plan = await explain(
    api,
    owner,
    "query ($id: ID!) { buyer(id: $id) { user { fullName } lead { buyer { id } } } }",
    {
      id: viewer.purchases[0].id,
    },
  );
  expect(cost(plan, "buyers")).toBeLessThanOrEqual(5);
});

test("a person's leads and purchases are looked up by the person", async () => {
  // The data were loaded without triggers: the latest leads of the organization get a person each.
  const organization = "(select p.organization_id from app_public.projects p where p.id = $1)";
  const client = await api.owner.connect();
  try {
    await client.query("begin; set local session_replication_role = replica");
    await client.query(
      `update app_public.leads l set person_id = gen_random_uuid() where l.id = any (array(select n.id from app_public.leads n
         where n.organization_id = ${organization} order by n.registered_at desc, n.id desc limit 200))`,
      [project],
    );
    await client.query(
      `insert into app_public.persons (id, organization_id) select l.person_id, l.organization_id from app_public.leads l
       where l.person_id is not null and l.organization_id = ${organization}`,
      [project],
    );
    await client.query("commit");
  } finally {
    client.release();
  }
  await api.owner.query("analyze app_public.leads, app_public.persons");
  const plan = await explain(
    api,
    owner,
    "{ leads(first: 50) { id person { id name leads(first: 10) { id } purchases(first: 10) { id } } } }",
  );
  expect([...plan.indexes]).toEqual(expect.arrayContaining(["leads_person", "buyers_person"]));
  // The page, its persons, the records that make them visible, their names, and their leads.
  for (const [table, most] of [
    ["leads", 5 * 50],
    ["persons", 50],
    ["buyers", 50],
  ] as const)
    expect(cost(plan, table)).toBeLessThanOrEqual(most);
});
