import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Pool } from "pg";
import { asViewer } from "../../src/database/asViewer.ts";
import { startLargeOrganization, type LargeOrganization } from "../harness/largeOrganization.ts";
import { poolOf } from "../harness/database.ts";

// A viewer who sees few projects of many reads a list that is merged from these projects; each is only read
// as far as the page requires.

const LEADS = 400;
let crowd: LargeOrganization;
let viewers: Pool;

beforeAll(async () => {
  crowd = await startLargeOrganization(
    { leads: LEADS, projects: 40 },
    () => ({ leads: 10 }),
    async (client) => {
      // Many rows have the same time, and most are in few projects.
      await client.query("set session_replication_role = replica");
      await client.query(
        `update app_public.leads l set registered_at = date_trunc('month', l.registered_at),
         project_id = case when l.phone < '+14161000250' then p.ids[1 + right(l.phone, 1)::int / 4] else l.project_id end
       from (select organization_id, array_agg(id order by id) as ids from app_public.projects group by 1) p
       where p.organization_id = l.organization_id`,
      );
      await client.query("analyze app_public.leads");
    },
  );
  viewers = poolOf(crowd.api.database.authenticatorUrl, 1);
});
afterAll(async () => {
  await viewers?.end();
  await crowd.api.stop();
});

const list =
  "query ($first: Int, $offset: Int, $filter: LeadsFilter) { leads(first: $first, offset: $offset, filter: $filter) { id } }";
const page = `query ($first: Int, $after: Cursor, $filter: LeadsFilter) {
  leadsConnection(first: $first, after: $after, filter: $filter) { nodes { id } pageInfo { hasNextPage endCursor } } }`;

/** All rows that the policy permits, in the order of the list. */
async function shown(person: LargeOrganization["member"], status?: string[]): Promise<string[]> {
  const { rows } = await asViewer(viewers, { role: "plat_user", "plat.user_id": person.id! }, (client) =>
    client.query<{ id: string }>(
      `select id from app_public.leads where $1::text[] is null or status = any ($1)
       order by registered_at desc, id desc`,
      [status ?? null],
    ),
  );
  return rows.map(({ id }) => id);
}

test.each([
  ["owner", undefined],
  ["member", undefined],
  ["seller", undefined],
  ["owner", ["NEW"]],
  ["member", ["NEW", "HOT"]],
  ["seller", ["NEW", "HOT"]],
] as const)("the leads of %s with the status %j", async (who, status) => {
  const person = crowd[who];
  const filter = status && { status };
  const all = await shown(person, status && [...status]);
  expect(all.length).toBeGreaterThan(who === "seller" ? 0 : 50);
  for (const first of [1, 2, 7, 40, 41, 100, 1000])
    for (const offset of [0, 3, 60])
      expect((await person.get(list, { first, offset, filter })).leads.map(({ id }: any) => id)).toEqual(
        all.slice(offset, offset + first),
      );
  const pages: string[] = [];
  for (let after: string | null = null; ;) {
    const { nodes, pageInfo }: any = (await person.get(page, { first: 30, after, filter })).leadsConnection;
    pages.push(...nodes.map(({ id }: any) => id));
    if (!pageInfo.hasNextPage) break;
    after = pageInfo.endCursor;
  }
  expect(pages).toEqual(all);
});
