/**
 * Reservations, offers and agreements are found by their numbers with the index of each project in which the viewer
 * sees deals, for any number of rows; and so are the agreements of leads. DEALS sets another number of each, such as
 * 1000000.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { loadDealNumbers } from "../../bench/data/dealNumbers.ts";
import { loadOffers } from "../../bench/data/offers.ts";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { explain, plan, scanned, touched } from "../harness/explain.ts";

const amount = Number(process.env.DEALS ?? 20_000);
/** Of the organization. */
const projects = 10;
let api: Api;
let people: Record<"owner" | "member" | "seller" | "stranger", Person>;
let project: string;

beforeAll(async () => {
  const crowd = await startLargeOrganization(
    { leads: Math.ceil(amount / 10) },
    () => ({ leads: 500 }),
    async (client, organizations) => {
      for (const [name, rows] of [
        ["large", amount],
        ["other", 1_000],
      ] as const) {
        await loadOffers(client, organizations.get(name)!, rows);
        await loadDealNumbers(client, organizations.get(name)!, rows);
      }
    },
  );
  ({ api, project } = crowd);
  people = {
    owner: crowd.owner,
    member: crowd.member,
    seller: crowd.seller,
    stranger: await api.signUp("Olga Outsider"),
  };
}, 600_000);
afterAll(() => api.stop());

const kinds = [
  ["reservations", "R", "{sale.read}"],
  ["offers", "O", "{sale.read}"],
  ["agreements", "A", "{lead.read, buyer.read}"],
] as const;

test.each(kinds)("%s: one row of each project, by its index", async (table, letter, permissions) => {
  const client = await api.owner.connect();
  try {
    for (const [name, person] of Object.entries(people)) {
      const nodes = await plan(
        client,
        person.id,
        `select t.id from app_public.${table} t where t.project_id = any (array(select app_hidden.search_number_projects('${permissions}', null)))
           and t.number = app_hidden.deal_number('${letter}', '42')`,
      );
      expect([name, scanned(nodes).filter((scan) => scan === table)]).toEqual([name, []]);
      expect(nodes.map((node) => node["Index Name"])).toContain(`${table}_number`);
      expect(touched(nodes, table)).toBeLessThanOrEqual(name === "stranger" ? 0 : projects);
    }
  } finally {
    client.release();
  }
});

/** The tables that a search reads, from the statistics of its session, which include statements in functions. */
async function reads(person: Person, query: string, only: string | null = null) {
  const client = await api.owner.connect();
  const counted = async () =>
    (
      await client.query<{ scans: number; rows: number }>(
        `select coalesce(sum(seq_scan), 0)::int as scans, coalesce(sum(idx_tup_fetch), 0)::int as rows from pg_stat_xact_user_tables
         where schemaname = 'app_public' and relname in ('reservations', 'offers', 'agreements')`,
      )
    ).rows[0]!;
  try {
    await client.query("begin; set local role plat_user");
    await client.query("select set_config('plat.user_id', $1, true)", [person.id]);
    // Includes statistics of earlier transactions that the session has not reported yet.
    const before = await counted();
    const { rows: found } = await client.query(
      "select type, title from app_public.search($1, project_id => $2)",
      [query, only],
    );
    const after = await counted();
    return { found, scans: after.scans - before.scans, rows: after.rows - before.rows };
  } finally {
    await client.query("rollback");
    client.release();
  }
}

test.each(["R-42", "O-42", "A-42", "42"])(
  "a search for %s reads the rows with the number, and then checks their visibility",
  async (query) => {
    const seen: Record<string, number[]> = {};
    for (const [name, person] of Object.entries(people)) {
      const { found, scans, rows } = await reads(person, query);
      const numbers = found.filter(({ type }) => ["RESERVATION", "OFFER", "AGREEMENT"].includes(type));
      expect([name, query, scans]).toEqual([name, query, 0]);
      expect(rows).toBeLessThanOrEqual(query === "42" ? 2 * 3 * projects : 2 * projects);
      seen[name] = [numbers.length, rows];
    }
    expect(seen.owner![0]).toBe(query === "42" ? 3 * projects : projects);
    expect(seen.stranger).toEqual([0, 0]);
  },
);

test("in one project it reads one row of each type", async () => {
  const { found, scans, rows } = await reads(people.owner, "42", project);
  expect(found.slice(-3).map(({ title }) => title)).toEqual(["R-000042", "O-000042", "A-000042"]);
  expect([scans, rows]).toEqual([0, 6]);
});

test("agreements of a page of leads are looked up by the lead, and the policy refuses none of them", async () => {
  const page = "{ leads(first: 50) { id agreements { id number } } }";
  for (const [name, person] of Object.entries(people)) {
    const found = await explain(api, person, page);
    expect([name, scanned(found.nodes).filter((table) => table === "agreements")]).toEqual([name, []]);
    const { leads } = await person.get(page);
    const answered = leads.flatMap((lead: any) => lead.agreements).length;
    expect([name, found.touched("agreements")]).toEqual([name, answered]);
    // The policy checks the lead if a viewer only sees their own; reading leads has tests of its own.
    const policyReads = found.nodes.filter((node) => node["Index Name"] === "leads_id_project_id_key");
    expect(touched(policyReads, "leads")).toBeLessThanOrEqual(answered);
  }
});

test("a page of the agreements of a project uses its index for viewers who see all of them", async () => {
  const client = await api.owner.connect();
  try {
    for (const person of [people.owner, people.member]) {
      const nodes = await plan(
        client,
        person.id,
        `select * from app_public.agreements a where a.project_id = '${project}' and a.deleted_at is null order by a.id desc limit 50`,
      );
      expect(nodes.map((node) => node["Index Name"])).toContain("agreements_project");
      expect(touched(nodes, "agreements")).toBe(50);
      expect(touched(nodes, "leads")).toBe(0);
    }
  } finally {
    client.release();
  }
});
