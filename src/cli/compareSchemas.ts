/**
 * Prints every difference between two schemas, and exits with code 1 if there are any:
 *
 * npm run schema:compare -- <from> [<to>] [--ignore-space] [--ignore-space-in-literals] [--no-rows]
 * npm run schema:compare -- --from-url <postgres://…> --to-url <postgres://…>
 *
 * `from` and `to` are git revisions or folders with migrations, built in temporary databases; `to` defaults to the working tree.
 * --ignore-space ignores comments and white space outside of literals; --ignore-space-in-literals also inside of them, because most are SQL
 * to execute. Comments on objects and rows are compared exactly.
 */
import { chmod, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { readCatalog, type CatalogObject } from "../database/catalog.ts";
import { filledTables } from "../database/catalogRows.ts";
import { startEmbeddedPostgres } from "../database/embeddedServer.ts";
import { compareCatalogs, printDifferences } from "./schemaCompare/report.ts";
import { buildSchema, findMigrations } from "./schemaCompare/buildSchema.ts";

const { values: options, positionals } = parseArgs({
  allowPositionals: true,
  allowNegative: true,
  options: {
    "ignore-space": { type: "boolean", default: false },
    "ignore-space-in-literals": { type: "boolean", default: false },
    rows: { type: "boolean", default: true },
    "from-url": { type: "string" },
    "to-url": { type: "string" },
  },
});

async function withClients<T>(urls: string[], work: (clients: Client[]) => Promise<T>): Promise<T> {
  const clients = urls.map((connectionString) => new Client({ connectionString }));
  try {
    for (const client of clients) await client.connect();
    return await work(clients);
  } finally {
    for (const client of clients) await client.end();
  }
}

async function readBoth(urls: string[]): Promise<CatalogObject[][]> {
  return withClients(urls, async (clients) => {
    const filled = new Set((await Promise.all(clients.map(filledTables))).flat());
    return Promise.all(
      clients.map(async (client) =>
        readCatalog(client, { rowsOf: options.rows ? await existing(client, [...filled]) : [] }),
      ),
    );
  });
}

async function existing(client: Client, tables: string[]): Promise<string[]> {
  const { rows } = await client.query<{ name: string }>(
    "select name from unnest($1::text[]) as name where to_regclass(name) is not null",
    [tables],
  );
  return rows.map(({ name }) => name);
}

/** Builds both concurrently in a temporary cluster. */
async function buildAndRead(from: string, to: string): Promise<CatalogObject[][]> {
  await using before = await findMigrations(from);
  await using after = await findMigrations(to);
  const folder = await mkdtemp(join(tmpdir(), "plat-compare-"));
  await chmod(folder, 0o711);
  const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true });
  try {
    const url = (name: string) =>
      Object.assign(new URL(postgres.connectionString), { pathname: `/${name}` }).href;
    await withClients([url("postgres")], async ([client]) => {
      for (const name of ["before", "after"])
        await client!.query(`create database ${name} template template0`);
    });
    // Roles belong to the cluster, so one after the other.
    await buildSchema(url("before"), before.folder);
    await buildSchema(url("after"), after.folder);
    return await readBoth([url("before"), url("after")]);
  } finally {
    await postgres.stop();
    await rm(folder, { recursive: true, force: true });
  }
}

const [from, to = join(import.meta.dirname, "../..")] = positionals;
const urls = [options["from-url"], options["to-url"]];
if (urls.some(Boolean) ? !urls.every(Boolean) || from !== undefined : from === undefined) {
  console.error("Give a revision or a folder to compare with, or both --from-url and --to-url.");
  process.exit(2);
}
const [before, after] = from === undefined ? await readBoth(urls as string[]) : await buildAndRead(from, to);
const differences = compareCatalogs(before!, after!, {
  ignoreSpace: options["ignore-space"],
  ignoreSpaceInLiterals: options["ignore-space-in-literals"],
});
if (differences.length === 0) console.log(`No differences among ${before!.length} objects.`);
else {
  console.log(printDifferences(differences));
  console.log(
    `${differences.length} differences among ${before!.length} objects before and ${after!.length} after.`,
  );
  process.exitCode = 1;
}
