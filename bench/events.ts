/** What the stream of events costs: rows per second of inserts of leads, with and without it. */
import type { Client } from "pg";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const ROUNDS = unlessSmoke(5, 1);
/** Rows of one statement; BENCH_SIZE sets it. */
const ROWS = sized(10_000, 20);
/** Rows one by one. */
const SINGLE = unlessSmoke(500, 5);

interface Contestant {
  label: string;
  before: string;
  after: string;
}

const contestants: Contestant[] = [
  { label: "everything on", before: "", after: "" },
  {
    label: "without events",
    before: "alter table app_public.leads disable trigger _950_events_insert",
    after: "alter table app_public.leads enable trigger _950_events_insert",
  },
  {
    label: "without any trigger",
    before: "set session_replication_role = replica",
    after: "reset session_replication_role",
  },
];

/** Milliseconds that one transaction takes which inserts the rows. */
async function insert(
  client: Client,
  project: string,
  organization: string,
  rows: number,
  statements: number,
): Promise<number> {
  const start = performance.now();
  await client.query("begin");
  for (let n = 0; n < statements; n += 1)
    await client.query({
      name: "insert",
      text: `insert into app_public.leads (project_id, organization_id, name, email, phone, source)
        select $1, $2, 'Lead ' || n, 'lead' || n || '.' || gen_random_uuid() || '@example.com', '+14165550123', 'WEB_DIRECT'
        from generate_series(1, $3::int) n`,
      values: [project, organization, rows / statements],
    });
  await client.query("commit");
  return performance.now() - start;
}

export default async function events(): Promise<void> {
  await withDatabase(async ({ owner }) => {
    const one = async (text: string, values: unknown[] = []) =>
      (await owner.query<{ id: string }>(text, values)).rows[0]!.id;
    const user = await one(
      "insert into app_public.users (first_name, last_name) values ('A', 'B') returning id",
    );
    const organization = await one(
      "insert into app_public.organizations (name) values ('Bench') returning id",
    );
    await owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'OWNER')",
      [organization, user],
    );
    const project = await one(
      "insert into app_public.projects (organization_id, title, status) values ($1, 'P', 'SELLING') returning id",
      [organization],
    );
    for (const [viewer, id] of Object.entries({ "by the service": "", "by a user": user })) {
      await owner.query("select set_config('plat.user_id', $1, false)", [id]);
      for (const [rows, statements] of [
        [ROWS, 1],
        [SINGLE, SINGLE],
      ] as const) {
        console.log(`${rows} leads in ${statements} statement${statements === 1 ? "" : "s"}, ${viewer}`);
        const figures = contestants.map((): number[] => []);
        for (let round = 0; round < ROUNDS; round += 1)
          for (const [i, { before, after }] of contestants.entries()) {
            if (before) await owner.query(before);
            figures[i]!.push(rows / ((await insert(owner, project, organization, rows, statements)) / 1000));
            if (after) await owner.query(after);
          }
        for (const [i, { label }] of contestants.entries()) {
          const perSecond = percentile(figures[i]!, 0.5);
          const ratio = perSecond / percentile(figures[0]!, 0.5);
          console.log(
            `  ${label.padEnd(24)} ${perSecond.toFixed(0).padStart(8)} rows/s   × ${ratio.toFixed(2)}`,
          );
        }
      }
    }
  });
}
