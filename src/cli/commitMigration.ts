/**
 * `npm run migrations:commit -- <name>`: commits migrations/current.sql with graphile-migrate. It uses databases of a
 * scratch cluster, so that no environment variables or hashes are needed.
 */
import { cp, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join, resolve } from "node:path";
import { closeConnections, runChain } from "../database/chain.ts";
import { readMigrations } from "../database/committed.ts";
import { currentFile, readCurrent, runCurrent } from "../database/current.ts";
import { removeDataDir } from "../database/dataDirs.ts";
import { startEmbeddedPostgres } from "../database/embeddedServer.ts";
import { prepare } from "../database/migrate.ts";
import { onConnection } from "../database/onConnection.ts";
import { removeLeftoverFolders, scratchFolder } from "../database/scratchFolder.ts";

const require = createRequire(import.meta.url);
const { commit, Logger } = require("graphile-migrate") as typeof import("graphile-migrate");

const [name, ...more] = process.argv.slice(2);
/** JSON with lines of comments. */
const settings = JSON.parse((await readFile(".gmrc", "utf8")).replaceAll(/^\s*\/\/.*$/gm, "")) as Parameters<
  typeof commit
>[0];
const folder = resolve(settings.migrationsFolder ?? "migrations");
if (!name || more.length > 0 || !/^[a-z0-9-]+$/.test(name))
  fail(
    "Give the name of the migration, in lower-case letters, digits and hyphens: npm run migrations:commit -- billboards",
  );
else if (!(await readCurrent(folder)))
  fail("migrations/current.sql contains no statement: write the migration there first.");
else await inScratchCluster(commitThere);

function fail(sentence: string): void {
  console.error(sentence);
  process.exitCode = 1;
}

async function inScratchCluster(work: (root: string, copy: string) => Promise<void>): Promise<void> {
  await removeLeftoverFolders();
  const dataDir = await scratchFolder("commit");
  try {
    const postgres = await startEmbeddedPostgres({ dataDir, fast: true });
    try {
      await work(postgres.connectionString, join(dataDir, "migrations"));
    } finally {
      await postgres.stop();
    }
  } finally {
    await removeDataDir(dataDir);
  }
}

/** Works on a copy of the folder, so that watchers see the new file and the empty current.sql at once, or neither. */
async function commitThere(connectionString: string, copy: string): Promise<void> {
  const at = (database: string) =>
    Object.assign(new URL(connectionString), { pathname: `/${database}` }).href;
  await cp(join(folder, "committed"), join(copy, "committed"), { recursive: true });
  await cp(join(folder, currentFile), join(copy, currentFile));
  await prepare(connectionString);
  try {
    await tryCurrent(connectionString);
  } catch (error) {
    return fail((error as Error).message);
  }
  const errors: string[] = [];
  const logger = new Logger(() => (level, message) => {
    if (level === "error") errors.push(message);
  });
  try {
    await commit(
      {
        ...settings,
        migrationsFolder: copy,
        connectionString,
        shadowConnectionString: at("shadow"),
        rootConnectionString: at("postgres"),
        logger,
      },
      name,
    );
  } catch (error) {
    return fail([...errors, (error as Error).message].join("\n"));
  } finally {
    closeConnections();
  }
  const { file } = (await readMigrations(join(copy, "committed"))).at(-1)!;
  await writeFile(join(folder, "committed", file), await readFile(join(copy, "committed", file)));
  await writeFile(join(folder, currentFile), "");
  console.log(`Committed ${join("migrations", "committed", file)}; migrations/current.sql is empty again.`);
}

/** Reports an error with its location, before anything is committed. */
async function tryCurrent(connectionString: string): Promise<void> {
  await onConnection(connectionString, async (client) => {
    await runChain(client, connectionString, { folder });
    await client.query("begin");
    await runCurrent(client, folder, await readCurrent(folder));
    await client.query("rollback");
  });
}
