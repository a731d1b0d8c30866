/** The reference: a database built only from the files of the repository, with which other databases are compared. */
import { randomBytes } from "node:crypto";
import { Client, escapeIdentifier } from "pg";
import { readCatalog } from "./catalog.ts";
import { migrateJobRunner, runChain } from "./chain.ts";
import { migrateOn } from "./onConnection.ts";
import { readObjectsOn, type Reference, type ReferenceOptions } from "./referenceCatalog.ts";
import { limitDatabase, ownerUrl } from "./roles.ts";
import { startReferenceCluster } from "./referenceCluster.ts";

const prefix = "plat_reference_";

/**
 * Builds the reference in a scratch database beside the target, or in a separate cluster if the owner may not create
 * databases, and reads it. Nothing of it stays; leftovers of a killed process are removed by the next one.
 * @param target a connection of the login that migrates and holds the migration lock.
 * @throws SchemaError for an error in the files, before the target was touched.
 */
export async function readReference(
  target: Client,
  targetUrl: string,
  options: ReferenceOptions,
): Promise<Reference> {
  if (!(await mayCreateDatabases(target))) return await inOwnCluster(options);
  await dropLeftovers(target);
  const { rows } = await target.query<{ oid: string }>(
    "select oid::text from pg_database where datname = current_database()",
  );
  const name = `${prefix}${rows[0]!.oid}_${randomBytes(4).toString("hex")}`;
  // Encoding and collation of the target, regardless of the cluster.
  await target.query(`create database ${name} template template0`);
  const url = new URL(ownerUrl(targetUrl));
  url.pathname = `/${name}`;
  try {
    await limitDatabase(target, name);
    return await build(url.href, options);
  } finally {
    await target.query(`drop database if exists ${name} with (force)`);
  }
}

async function mayCreateDatabases(client: Client): Promise<boolean> {
  const { rows } = await client.query<{ yes: boolean }>(
    "select rolsuper or rolcreatedb as yes from pg_roles where rolname = current_user",
  );
  return rows[0]!.yes;
}

/** References of this database, whose lock we hold, and of databases that no longer exist. */
async function dropLeftovers(client: Client): Promise<void> {
  const { rows } = await client.query<{ name: string }>(
    `select d.datname as name from pg_database d
     cross join lateral (select split_part(d.datname, '_', 3) as oid) of
     where d.datname like 'plat\\_reference\\_%' and pg_has_role(d.datdba, 'usage')
       and (of.oid = (select oid::text from pg_database where datname = current_database())
         or not exists (select from pg_database t where t.oid::text = of.oid))`,
  );
  for (const { name } of rows)
    await client.query(`drop database if exists ${escapeIdentifier(name)} with (force)`);
}

async function build(connectionString: string, options: ReferenceOptions): Promise<Reference> {
  const url = new URL(connectionString);
  // It lives for seconds, so it need not survive a crash.
  const given = url.searchParams.get("options");
  url.searchParams.set("options", `${given ? `${given} ` : ""}-c synchronous_commit=off`);
  const chain = await migrateOn(url.href, async (client) => {
    await migrateJobRunner(url.href);
    await runChain(client, url.href, { folder: options.folder });
    return options.current ? await readCatalog(client) : undefined;
  });
  return { ...(await readObjectsOn(url.href, options)), ...(chain && { chain }) };
}

async function inOwnCluster(options: ReferenceOptions): Promise<Reference> {
  const cluster = await startReferenceCluster();
  try {
    return await cluster.make(options);
  } finally {
    await cluster.stop();
  }
}
