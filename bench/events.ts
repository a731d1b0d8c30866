/**
 * Costs of the event stream: inserted leads per second with and without events, and reads of several years of events,
 * in partitions of a quarter, by each kind of viewer.
 * Claim: a page takes the same time for five years as for a quarter, with any filter; counting the readable events of
 * a member takes microseconds per event; a quarter is detached within milliseconds. BENCH_SIZE sets the number of
 * events (5,000,000); `BENCH_SIZE=100000000 npm run bench -- events` loads a hundred million.
 */
import type { Client, DatabaseError } from "pg";
import { STATEMENT_TIMEOUT_MS } from "../src/database/pool.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { loadEventYears, partitionYears } from "./data/eventYears.ts";
import { sized, unlessSmoke } from "./data/size.ts";

const ROUNDS = unlessSmoke(5, 1);
/** Rows per statement. */
const ROWS = unlessSmoke(10_000, 20);
/** Number of events; set by BENCH_SIZE. */
const EVENTS = sized(5_000_000, 2_000);
const YEARS = 5;
/** Number of rows that are inserted one by one. */
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

/** Milliseconds of one transaction that inserts the rows. */
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
    await owner.query("select set_config('plat.user_id', '', false)");
    await years(owner);
  });
}

/** Inserts the events of several years into their partitions, and reads them. */
async function years(client: Client): Promise<void> {
  const start = performance.now();
  const user = async (name: string) =>
    (
      await client.query<{ id: string }>(
        "insert into app_public.users (first_name, last_name) values ($1, 'Years') returning id",
        [name],
      )
    ).rows[0]!.id;
  const readers = {
    owner: await user("Owner"),
    member: await user("Member"),
    seller: await user("Seller"),
    buyer: await user("Buyer"),
  };
  await client.query("set session_replication_role = replica");
  await client.query("delete from app_public.events");
  await client.query("reset session_replication_role");
  await partitionYears(client, YEARS);
  const { organization, project } = await loadEventYears(client, readers, { events: EVENTS, years: YEARS });
  const { rows: sizes } = await client.query<{ parts: number; bytes: string }>(
    "select count(*)::int as parts, pg_size_pretty(sum(pg_total_relation_size(relation))) as bytes from app_private.event_partitions()",
  );
  console.log(
    `${EVENTS} events of ${YEARS} years, ${sizes[0]!.bytes} in ${sizes[0]!.parts} partitions, loaded in ${((performance.now() - start) / 1000).toFixed(0)} s`,
  );
  await read(client, organization, project, {
    "an OWNER": { id: readers.owner },
    "a MEMBER": { id: readers.member },
    "a seller of one project": { id: readers.seller },
    "a token for the inventory": {
      id: readers.owner,
      scopes: ["org.member", "project.read", "inventory.read"],
    },
    "a buyer": { id: readers.buyer },
  });
  await rewrite(client);
  await writeAndDetach(client, organization);
}

interface Reader {
  id: string;
  /** Scopes of an access token; undefined for a login token. */
  scopes?: string[];
}

/** The statements of lists and connections, with the access settings of the API. */
async function read(
  client: Client,
  organization: string,
  project: string,
  readers: Record<string, Reader>,
): Promise<void> {
  const middle = Math.floor(EVENTS / 2);
  const within = (set: string, column: string, where: string, order: string) =>
    `select b.* from unnest(app_hidden.${set}('org.member')) s (id) cross join lateral (select t.id, t.organization_id, t.sequence, t.name, t.data, t.changes
       from app_hidden.masked_events t where t.${column} = s.id
         and t.organization_id = '${organization}' ${where} order by t.organization_id${order}, t.sequence${order}, t.id${order} limit 50) b`;
  // A list reads what the organizations of the viewer own, and the projects that they take part in.
  const list = (where: string, order = "") =>
    `select * from (${within("viewer_organizations", "organization_id", where, order)}
       union all ${within("viewer_projects", "project_id", where, order)}) u
     order by organization_id${order}, sequence${order}, id${order} limit 50`;
  const statements: [string, string][] = [
    ["the first page", list("")],
    ["a page in the middle", list(`and sequence > ${middle}`)],
    ["the latest page", list("", " desc")],
    ["by name, from the middle", list(`and sequence > ${middle} and name = 'unit.created'`)],
    ["by type, from the middle", list(`and sequence > ${middle} and subject_type = 'unit'`)],
    [
      "the history of a record",
      `select id, name, data from app_hidden.masked_events where subject_id = (select id from app_public.leads limit 1) order by id desc limit 50`,
    ],
    [
      "the latest page of a project",
      `select id, sequence, name, data, changes from app_hidden.masked_events
       where project_id = '${project}' and organization_id = '${organization}' order by sequence desc limit 50`,
    ],
    [
      "count of a project",
      `select count(*) from app_hidden.masked_events where project_id = '${project}' and organization_id = '${organization}'`,
    ],
    [
      "count of 10,000",
      `select count(*) from app_hidden.masked_events where organization_id = '${organization}' and sequence > ${EVENTS - 10_000}`,
    ],
    [
      "count of all",
      `select count(*) from app_hidden.masked_events where organization_id = '${organization}'`,
    ],
  ];
  for (const [reader, { id, scopes }] of Object.entries(readers)) {
    console.log(`Read by ${reader}, milliseconds, median / 95 %`);
    await client.query(`begin; set local statement_timeout = ${STATEMENT_TIMEOUT_MS}`);
    const { rows } = await client.query<{ access: string; classes: string[] }>(
      "select access, classes from app_private.access_of($1, null, $2)",
      [id, scopes ?? null],
    );
    const { access, classes } = rows[0]!;
    const settings = {
      "plat.user_id": id,
      ...(scopes && { "plat.token_id": id, "plat.scopes": scopes.join(",") }),
      "plat.access": access,
      "plat.access_": "{}|{}|{}|{}|{}",
      ...Object.fromEntries(classes.map((sets, n) => [`plat.access_${n + 1}`, sets])),
      role: "plat_user",
    };
    await client.query("select set_config(s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify(settings),
    ]);
    for (const [label, text] of statements) {
      await client.query("savepoint reading");
      let result: string;
      try {
        const figures = await time(() => client.query(text));
        result = `${percentile(figures, 0.5).toFixed(2).padStart(10)} / ${percentile(figures, 0.95).toFixed(2)}`;
      } catch (error) {
        if ((error as DatabaseError).code !== "57014") throw error;
        result = `   ended by the statement timeout of ${STATEMENT_TIMEOUT_MS / 1000} s`;
      }
      await client.query("rollback to savepoint reading; release savepoint reading");
      console.log(`  ${label.padEnd(28)} ${result}`);
    }
    await client.query("rollback");
  }
}

/** Measures how the space of an emptied quarter is freed. */
async function rewrite(client: Client): Promise<void> {
  const { rows } = await client.query<{ relation: string; rows: number }>(
    "select p.relation::text, c.reltuples::int as rows from app_private.event_partitions() p join pg_class c on c.oid = p.relation where p.ends_at < now() order by c.reltuples desc limit 1",
  );
  const { relation, rows: amount } = rows[0]!;
  await client.query("set session_replication_role = replica");
  await client.query(`update ${relation} set data = '{}', changes = null, erased_at = now()`);
  await client.query("reset session_replication_role");
  await client.query(`vacuum (analyze) ${relation}`);
  const size = async () =>
    (
      await client.query<{ size: string }>(
        `select pg_size_pretty(pg_total_relation_size('${relation}')) as size`,
      )
    ).rows[0]!.size;
  const before = await size();
  const figures: number[] = [];
  for (let step: string | null = ""; step !== null;) {
    const start = performance.now();
    ({ step } = (
      await client.query<{ step: string | null }>("select app_private.rewrite_events(10000, 100000) as step")
    ).rows[0]!);
    figures.push(performance.now() - start);
  }
  console.log(
    `An emptied quarter of ${amount} events, rewritten in ${figures.length} steps: ${before} → ${await size()}; milliseconds of a step, median ${percentile(figures, 0.5).toFixed(0)}, most ${Math.max(...figures).toFixed(0)}`,
  );
}

/** Compares inserts into partitions with inserts into one table, and measures the removal of a quarter. */
async function writeAndDetach(client: Client, organization: string): Promise<void> {
  await client.query(`create table one_table (like app_public.events including defaults);
    create unique index on one_table (organization_id, sequence); create unique index on one_table (id);
    create index on one_table (subject_id, id); create index on one_table (project_id, organization_id, sequence)`);
  const write = async (table: string, first: number) => {
    const start = performance.now();
    await client.query(
      `insert into ${table} (stream_id, organization_id, sequence, name, subject_type, subject_id, actor_type, channel, data)
       select $1, $1, n, 'lead.updated', 'lead', $1, 'USER', 'API', '{"name": "A"}' from generate_series($2::int, $2::int + $3::int - 1) n`,
      [organization, first, ROWS],
    );
    return ROWS / ((performance.now() - start) / 1000);
  };
  const figures: Record<string, number[]> = { "app_public.events": [], one_table: [] };
  for (let round = 0; round < ROUNDS; round += 1)
    for (const table of Object.keys(figures))
      figures[table]!.push(await write(table, EVENTS + 1 + round * ROWS));
  console.log(`${ROWS} events in one statement, rows/s`);
  for (const [table, list] of Object.entries(figures))
    console.log(`  ${table.padEnd(28)} ${percentile(list, 0.5).toFixed(0).padStart(10)}`);

  const { rows } = await client.query<{ relation: string; rows: number }>(
    "select p.relation::text, c.reltuples::int as rows from app_private.event_partitions() p join pg_class c on c.oid = p.relation order by c.reltuples desc limit 2",
  );
  const [large, other] = rows;
  const start = performance.now();
  await client.query(`alter table app_public.events detach partition ${large!.relation}`);
  const detached = performance.now() - start;
  await client.query(`drop table ${large!.relation}`);
  const dropped = performance.now() - start - detached;
  await client.query("set session_replication_role = replica");
  const again = performance.now();
  await client.query(`delete from ${other!.relation}`);
  const deleted = performance.now() - again;
  await client.query("reset session_replication_role");
  console.log(`A quarter of ${large!.rows} events, milliseconds`);
  for (const [label, ms] of Object.entries({ detached, dropped, "deleted, row by row": deleted }))
    console.log(`  ${label.padEnd(28)} ${ms.toFixed(1).padStart(10)}`);
}
