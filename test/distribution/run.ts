/**
 * Tests the schema on a database that distributes rows by organization: a coordinator with the demo and two workers,
 * on which all tables are distributed as docs/sharding.md describes. Prints which statements are accepted and
 * refused, and which nodes a query of one organization uses.
 * CITUS_BINARIES=/opt/citus/bin node test/distribution/run.ts
 * The folder has initdb and postgres of PostgreSQL 18 with the extension citus installed.
 */
import { execFileSync } from "node:child_process";
import { readFile, realpath, writeFile } from "node:fs/promises";
import { join } from "node:path";
import type { Client } from "pg";
import { migratedDataDir } from "../../src/cli/migratedDataDir.ts";
import { copyDataDir, removeDataDir } from "../../src/database/dataDirs.ts";
import { embeddedSettings, fastSettings, startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { type Postmaster, startPostmaster } from "../../src/database/postmaster.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { databaseUser } from "../../src/database/systemUser.ts";
import { readTenancies, type Tenancies } from "../../src/database/tenancy.ts";
import { loadDemo } from "../../src/demo/index.ts";

const binaries = process.env.CITUS_BINARIES;
if (!binaries) throw new Error("Name the folder with initdb and postgres by CITUS_BINARIES.");

const settings = {
  ...embeddedSettings,
  ...fastSettings,
  wal_level: "logical",
  max_wal_senders: 10,
  max_connections: 200,
  max_locks_per_transaction: 1_024,
  max_prepared_transactions: 200,
  shared_buffers: "128MB",
  log_min_messages: "error",
  shared_preload_libraries: "citus",
  "citus.node_conninfo": "sslmode=disable",
  "citus.shard_count": 4,
};

const folders: string[] = [];
const servers: Postmaster[] = [];

/** Starts the engine on a cluster to which everybody on this machine may connect. */
async function start(data: string): Promise<string> {
  const runAs = databaseUser(data);
  const rules = join(data, "pg_hba.conf");
  await writeFile(rules, `host all all 127.0.0.1/32 trust\n${await readFile(rules, "utf8")}`);
  const server = await startPostmaster({
    postgres: join(binaries!, "postgres"),
    data,
    logFile: join(data, "..", "engine.log"),
    runAs,
    settings,
  });
  servers.push(server);
  return `postgres://plat@127.0.0.1:${server.port}/plat`;
}

async function coordinator(): Promise<string> {
  const folder = await scratchFolder("coordinator");
  folders.push(folder);
  await copyDataDir(await migratedDataDir(), folder);
  const quiet = { info() {}, warn: console.warn };
  const embedded = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger: quiet });
  await loadDemo(embedded.connectionString);
  await embedded.stop();
  return await start(join(await realpath(join(folder, "postgres")), "data"));
}

async function worker(): Promise<string> {
  const folder = await scratchFolder("worker");
  folders.push(folder);
  const { uid, gid } = databaseUser(folder);
  if (uid !== undefined) execFileSync("chown", [`${uid}:${gid}`, folder]);
  const data = join(folder, "data");
  const who = uid === undefined ? {} : { uid, gid };
  execFileSync(
    join(binaries!, "initdb"),
    ["-D", data, "-A", "trust", "-U", "plat", "-E", "UTF8", "--locale=C", "-N"],
    {
      stdio: "ignore",
      ...who,
    },
  );
  const url = await start(data);
  await onConnection(url.replace(/\/plat$/, "/postgres"), (client) => client.query("create database plat"));
  return url;
}

async function addEngine(client: Client): Promise<void> {
  // Without "cascade", because its script fails for a schema that exists.
  await client.query("create extension if not exists citus_columnar");
  await client.query("create extension citus");
}

/** The number of refusals by message, without names and ids. */
class Refusals {
  readonly #found = new Map<string, { count: number; first: string }>();

  note(what: string, error: unknown): void {
    const { message: short, detail } = error as Error & { detail?: string };
    const message = [short, detail].filter(Boolean).join(": ");
    const words = message.replaceAll(/"[^"]*"|\b\d+\b|app_\w+\.\w+/g, "…");
    const known = this.#found.get(words) ?? { count: 0, first: `${what}: ${message}` };
    known.count += 1;
    this.#found.set(words, known);
  }

  print(): void {
    for (const { count, first } of [...this.#found.values()].toSorted((a, b) => b.count - a.count))
      console.log(`  ${count} × ${first.replaceAll(/\s+/g, " ")}`);
  }
}

/**
 * Executes each statement separately.
 * @returns the accepted ones
 */
async function attempt(
  client: Client,
  title: string,
  statements: readonly { what: string; sql: string }[],
): Promise<Set<string>> {
  const refusals = new Refusals();
  const taken = new Set<string>();
  for (const { what, sql } of statements)
    try {
      await client.query(sql);
      taken.add(what);
    } catch (error) {
      refusals.note(what, error);
    }
  console.log(`${title}: ${taken.size} of ${statements.length}`);
  refusals.print();
  return taken;
}

const referenceTables = (found: Tenancies) =>
  found.tables
    .filter(({ tenancy }) => tenancy === "reference" || tenancy === "account" || tenancy === "installation")
    .map(({ table }) => ({ what: table, sql: `select create_reference_table('${table}')` }));

const distributedTables = (found: Tenancies) =>
  found.tables
    .filter(({ tenancy }) => tenancy === "direct")
    .map(({ table, path }) => ({
      what: table,
      sql: `select create_distributed_table('${table}', '${path.at(-1)}')`,
    }));

/** Adapts keys to the engine: those without the organization are dropped, or extended by it if the table has it. */
async function adaptKeys(client: Client, found: Tenancies): Promise<void> {
  const direct = new Set(
    found.tables.filter(({ tenancy }) => tenancy === "direct").map(({ table }) => table),
  );
  const { rows: foreign } = await client.query<{ sql: string }>(
    `select format('alter table %s drop constraint %I', f.conrelid::regclass, f.conname) as sql from pg_constraint f
     where f.contype = 'f' and f.conparentid = 0 and f.connamespace::regnamespace::text like 'app\\_%'`,
  );
  const drops = foreign.map(({ sql }) => ({ what: sql, sql }));
  await attempt(client, "Foreign keys dropped", drops);
  const unique = found.uniqueKeys.filter(
    ({ table }) => direct.has(table) && table !== "app_public.organizations",
  );
  const changes: { what: string; sql: string }[] = [];
  for (const { table, name } of unique) {
    const { rows } = await client.query<{
      constraint: boolean;
      primary: boolean;
      definition: string;
      exclusion: boolean;
    }>(
      `select c.oid is not null as constraint, coalesce(c.contype = 'p', false) as primary, i.indisexclusion as exclusion,
         pg_get_indexdef(i.indexrelid) as definition
       from pg_index i left join pg_constraint c on c.conindid = i.indexrelid and c.contype in ('p', 'u', 'x')
       where i.indexrelid = ($1 || '.' || quote_ident($2))::regclass`,
      [table.split(".")[0], name],
    );
    const [key] = rows;
    const drop = key!.constraint
      ? `alter table ${table} drop constraint "${name}" cascade`
      : `drop index ${table.split(".")[0]}."${name}"`;
    const add = key!.primary
      ? `; alter table ${table} add primary key (organization_id, ${/\((.*)\)/.exec(key!.definition)![1]})`
      : key!.exclusion
        ? ""
        : `; ${key!.definition.replace(/ \(/, " (organization_id, ")}`;
    changes.push({ what: `${table} ${name}`, sql: drop + add });
  }
  await attempt(client, "Unique keys that get the organization", changes);
}

const deals = [
  "projects",
  "lots",
  "units",
  "leads",
  "reservations",
  "offers",
  "buyers",
  "deposits",
  "agreements",
  "events",
];

async function dropPolicies(client: Client): Promise<void> {
  const { rows } = await client.query<{ sql: string }>(
    `select format('drop policy %I on %s', p.polname, p.polrelid::regclass) as sql from pg_policy p`,
  );
  await attempt(
    client,
    "Policies dropped",
    rows.map(({ sql }) => ({ what: sql, sql })),
  );
}

async function withDeals(client: Client): Promise<void> {
  const { rows } = await client.query<{ organization: string; user: string; project: string }>(
    `select p.organization_id as organization, m.user_id as user, p.id as project from app_public.projects p
     join app_public.organization_user_connections m on m.organization_id = p.organization_id and m.role = 'OWNER'
     order by p.id limit 1`,
  );
  const { organization, user, project } = rows[0]!;
  const asViewer = (sql: string) =>
    `begin; set local role plat_user; set local plat.user_id = '${user}'; set local plat.channel = 'API'; ${sql}; rollback`;
  const ofOne = `organization_id = '${organization}'`;
  const statements = [
    {
      what: "leads of one organization, as the owner of the tables",
      sql: `select count(*) from app_public.leads where ${ofOne}`,
    },
    {
      what: "leads joined with purchases of one organization",
      sql: `select count(*) from app_public.leads l join app_public.buyers b on b.lead_id = l.id and b.organization_id = l.organization_id where l.${ofOne}`,
    },
    {
      what: "leads of all organizations, joined by id alone",
      sql: "select count(*) from app_public.leads l join app_public.buyers b on b.lead_id = l.id",
    },
    {
      what: "an update of a lead",
      sql: `begin; update app_public.leads set company = 'Sharded' where ${ofOne}; rollback`,
    },
    {
      what: "leads as a viewer, through policies",
      sql: asViewer(`select count(*) from app_public.leads where ${ofOne}`),
    },
    {
      what: "projects as a visitor",
      sql: `begin; set local role plat_anonymous; select count(*) from app_public.projects; rollback`,
    },
    {
      what: "createLead as a viewer, with its triggers",
      sql: asViewer(
        `insert into app_public.leads (organization_id, project_id, name, email) values ('${organization}', '${project}', 'Shard', 'shard@example.com')`,
      ),
    },
  ];
  const refusals = new Refusals();
  for (const { what, sql } of statements)
    try {
      await client.query(sql);
      console.log(`  runs: ${what}`);
    } catch (error) {
      await client.query("rollback");
      console.log(`  refused: ${what}: ${(error as Error).message.replaceAll(/\s+/g, " ")}`);
      refusals.note(what, error);
    }
  const plan = await client
    .query<{ "QUERY PLAN": string }>(`explain select * from app_public.leads where ${ofOne}`)
    .catch(() => undefined);
  const tasks = plan?.rows
    .map((row) => row["QUERY PLAN"].trim())
    .find((line) => line.startsWith("Task Count"));
  console.log(`  a query that names its organization: ${tasks ?? "no distributed plan"}`);
}

try {
  const main = await coordinator();
  const workers = [await worker(), await worker()];
  await onConnection(main, async (client) => {
    console.log(
      `PostgreSQL ${(await client.query<{ server_version: string }>("show server_version")).rows[0]!.server_version}`,
    );
    const found = await readTenancies(client);
    for (const url of workers) await onConnection(url, (one) => addEngine(one));
    await addEngine(client);
    console.log(
      (await client.query<{ version: string }>("select citus_version() as version")).rows[0]!.version,
    );
    const port = (url: string) => Number(new URL(url).port);
    await client.query("select citus_set_coordinator_host('127.0.0.1', $1)", [port(main)]);
    await attempt(
      client,
      "Workers added",
      workers.map((url) => ({ what: url, sql: `select citus_add_node('127.0.0.1', ${port(url)})` })),
    );
    console.log("\nAs the schema is");
    await attempt(client, "Reference tables", referenceTables(found));
    await attempt(client, "Tables distributed by organization_id", distributedTables(found));
    console.log(
      "\nWith keys that have the organization, without other foreign keys, and with unsafe triggers",
    );
    await client.query("set citus.enable_unsafe_triggers = on");
    await adaptKeys(client, found);
    await attempt(client, "Reference tables", referenceTables(found));
    const taken = await attempt(client, "Tables distributed by organization_id", distributedTables(found));
    console.log("\nWithout policies, which no service could do");
    await dropPolicies(client);
    await attempt(client, "Reference tables", referenceTables(found));
    const rest = await attempt(
      client,
      "Tables distributed by organization_id",
      distributedTables(found).filter(({ what }) => !taken.has(what)),
    );
    for (const table of rest) taken.add(table);
    console.log(
      `  of deals: ${deals.map((table) => `${table} ${taken.has(`app_public.${table}`) ? "yes" : "no"}`).join(", ")}`,
    );
    console.log(`\nDeals of one organization, with ${taken.size} distributed tables`);
    await withDeals(client);
  });
} finally {
  await Promise.all(servers.map((server) => server.stop()));
  for (const folder of folders) await removeDataDir(folder);
}
