/**
 * Waiting exports are found by an index among any number of completed ones. EXPORTS sets their number, such as
 * 1000000.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Pool, type PoolClient } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { scanned, touched, type Node } from "../harness/explain.ts";

const over = Number(process.env.EXPORTS ?? 20_000);
/** The maximum numbers of waiting exports of an organization, and of a person. */
const [waiting, ofPerson] = [100, 30];
let database: TestDatabase;
let owner: Pool;
/** The organization with waiting exports, and the person who requested some of them. */
let busy: string, asker: string;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 1 });
  const one = async (text: string, values: unknown[] = []) => (await owner.query(text, values)).rows[0].id;
  const organizations = [];
  for (const name of ["busy", "quiet"])
    organizations.push(
      await one("insert into app_public.organizations (name) values ($1) returning id", [name]),
    );
  busy = organizations[0];
  const people = [];
  for (const name of ["A", "B", "C", "D"])
    people.push(await one("insert into app_public.users (first_name) values ($1) returning id", [name]));
  asker = people[0];
  await owner.query("set session_replication_role = replica");
  const load = (amount: number, status: string, values: unknown[]) =>
    owner.query(
      `with made as (
         insert into app_public.exports (organization_id, subject, format, status, requested_by_id, filename)
         select ($1::uuid[])[1 + n % cardinality($1::uuid[])], 'LEADS', 'CSV', ${status}, ($2::uuid[])[1 + n / ${ofPerson} % cardinality($2::uuid[])], 'leads.csv'
         from generate_series(0, $3::int - 1) n returning id, status)
       insert into app_private.export_runs (export_id, file_key)
         select id, case when status = 'COMPLETED' then 'files/' || id end from made`,
      [...values, amount],
    );
  await load(over, "(array['EXPIRED', 'EXPIRED', 'EXPIRED', 'CANCELLED', 'COMPLETED'])[1 + n % 5]", [
    organizations,
    people,
  ]);
  await load(waiting, "case when n < 10 then 'PROCESSING' else 'PENDING' end", [[busy], people]);
  await owner.query("set session_replication_role = origin");
  await owner.query("analyze");
}, 600_000);
afterAll(async () => {
  await owner.end();
  await database.drop();
});

/** The plan nodes of a statement of the service. */
async function nodesOf(text: string, values: unknown[] = []): Promise<Node[]> {
  const { rows } = await owner.query(`explain (analyze, timing off, format json) ${text}`, values);
  const below = (node: Node): Node[] => [node, ...(node.Plans ?? []).flatMap(below)];
  return below(rows[0]["QUERY PLAN"][0].Plan);
}

test("the queue of an organization reads waiting and running exports, by its index", async () => {
  const nodes = await nodesOf(`select * from app_private.export_queue('${busy}')`);
  expect(nodes[0]!["Actual Rows"]).toBe(90);
  expect(nodes.map((node) => node["Index Name"])).toContain("exports_unfinished");
  expect(scanned(nodes)).not.toContain("exports");
  expect(touched(nodes, "exports")).toBeLessThanOrEqual(waiting);
});

test("so does counting those of a person and of the organization", async () => {
  const nodes = await nodesOf(
    `select count(*) filter (where e.requested_by_id = '${asker}'), count(*) from app_public.exports e
     where e.organization_id = '${busy}' and e.status in ('PENDING', 'PROCESSING')`,
  );
  expect(nodes.map((node) => node["Index Name"])).toContain("exports_unfinished");
  expect(touched(nodes, "exports")).toBeLessThanOrEqual(waiting);
});

/** The tables that a statement reads, from the statistics of its session, which include statements in functions. */
async function reads(work: (client: PoolClient) => Promise<unknown>) {
  const client = await owner.connect();
  const counted = async () => {
    const { rows } = await client.query<{ name: string; scans: string; rows: string }>(
      `select relname as name, seq_scan as scans, seq_tup_read + coalesce(idx_tup_fetch, 0) as rows from pg_stat_xact_user_tables
       where relname in ('exports', 'export_runs') order by relname`,
    );
    return rows.map((row) => [Number(row.scans), Number(row.rows)] as const);
  };
  try {
    await client.query("begin");
    const before = await counted();
    await work(client);
    const after = await counted();
    const [runs, exports] = after.map(([scans, rows], i) => ({
      scans: scans - before[i]![0],
      rows: rows - before[i]![1],
    }));
    return { runs: runs!, exports: exports! };
  } finally {
    await client.query("rollback");
    client.release();
  }
}

test("the sweep reads unfinished exports, and existing files", async () => {
  const { runs, exports } = await reads((client) =>
    client.query("select * from app_private.sweep_exports(100)"),
  );
  expect([runs.scans, exports.scans]).toEqual([0, 0]);
  expect(exports.rows).toBeLessThanOrEqual(2 * waiting + over / 5);
});
