import { execFile } from "node:child_process";
import { mkdtemp, readdir, readFile, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { applyObjects } from "../../database/objects.ts";
import { prepare } from "../../database/migrate.ts";

const run = promisify(execFile);
const root = join(import.meta.dirname, "../../..");

/** A folder of migrations, and how to remove it if it was created temporarily. */
export interface Migrations extends AsyncDisposable {
  folder: string;
}

/** The migrations of a folder (the project's or its migrations'), or of a revision of git. */
export async function findMigrations(folderOrRevision: string): Promise<Migrations> {
  for (const folder of [join(folderOrRevision, "migrations"), folderOrRevision])
    if (await isFolder(join(folder, "committed"))) return { folder, [Symbol.asyncDispose]: async () => {} };
  const folder = await mkdtemp(join(tmpdir(), "plat-revision-"));
  try {
    const archive = join(folder, "migrations.tar");
    await run("git", ["archive", `--output=${archive}`, folderOrRevision, "migrations"], { cwd: root });
    await run("tar", ["-xf", archive, "-C", folder]);
  } catch (error) {
    await rm(folder, { recursive: true, force: true });
    throw new Error(`${folderOrRevision} is neither a folder with migrations nor a revision of git.`, {
      cause: error,
    });
  }
  return {
    folder: join(folder, "migrations"),
    [Symbol.asyncDispose]: () => rm(folder, { recursive: true, force: true }),
  };
}

async function isFolder(path: string): Promise<boolean> {
  return (await stat(path).catch(() => undefined))?.isDirectory() ?? false;
}

/**
 * Builds a folder of migrations in an empty database: its committed files in order, without checking hashes, so that any revision works;
 * then its replaceable objects, or their predecessors.
 */
export async function buildSchema(connectionString: string, folder: string): Promise<void> {
  await prepare(connectionString);
  const client = new Client({ connectionString });
  await client.connect();
  try {
    await client.query("set client_min_messages = warning");
    const committed = join(folder, "committed");
    for (const file of (await readdir(committed)).filter((name) => name.endsWith(".sql")).sort()) {
      const sql = await readFile(join(committed, file), "utf8");
      await client.query(`begin;\n${sql}\n;commit`).catch((error: unknown) => {
        throw new Error(`${join(committed, file)}: ${(error as Error).message}`, { cause: error });
      });
    }
    if (await isFolder(join(folder, "objects"))) {
      await client.query("begin");
      await applyObjects(client, { folder });
      await client.query("commit");
    } else await refreshEvents(client);
  } finally {
    await client.end();
  }
}

/** Revisions without replaceable objects created the triggers of events after all migrations. */
async function refreshEvents(client: Client): Promise<void> {
  const { rows } = await client.query(
    "select to_regprocedure('app_private.refresh_events()') is not null as yes",
  );
  if (rows[0].yes) await client.query("select app_private.refresh_events()");
}
