/**
 * Rehearses an upgrade: the previous version serves a mixed load while this version migrates its database. `npm run
 * rehearse -- v1.4` takes the previous version from that commit; default: `HEAD^`. REHEARSAL_SECONDS (5) is the
 * duration of the load before and after, REHEARSAL_LEADS (20000) the number of leads. Fails if a table lock was
 * waited for longer than 100 ms, or the previous version returned an error.
 */
// oxlint-disable-next-line no-restricted-imports -- git, not a part of the service
import { execFile } from "node:child_process";
import { mkdir, symlink, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
// oxlint-disable-next-line no-restricted-imports -- the duration of the load
import { setTimeout as delay } from "node:timers/promises";
import { promisify } from "node:util";
import { Client } from "pg";
import { removeDataDir } from "../../src/database/dataDirs.ts";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { runToExit, startService } from "../harness/service.ts";
import { signIn, startLoad } from "../harness/load.ts";
import { watchLocks } from "./lockWaits.ts";

const longestMs = 100;
const seconds = Number(process.env.REHEARSAL_SECONDS ?? 5);
const leads = Number(process.env.REHEARSAL_LEADS ?? 20_000);
const repository = resolve(import.meta.dirname, "../..");
const run = promisify(execFile);

/** Checks out the code of a commit, with the packages of this one. */
async function codeOf(commit: string, folder: string): Promise<void> {
  await mkdir(folder, { recursive: true });
  const archive = join(folder, "code.tar");
  await run("git", ["archive", "--output", archive, commit], { cwd: repository });
  await run("tar", ["-xf", archive], { cwd: folder });
  await symlink(join(repository, "node_modules"), join(folder, "node_modules"));
}

/** Adds many leads to the demo's project, so that scans of the table take time. */
async function fill(connectionString: string, projectId: string): Promise<void> {
  const client = new Client({ connectionString });
  await client.connect();
  await client.query(
    `insert into app_public.leads (project_id, name, email)
     select $1, 'Former ' || n, 'former' || n || '@load.example' from generate_series(1, $2::int) n`,
    [projectId, leads],
  );
  await client.query("analyze");
  await client.end();
}

async function rehearse(commit: string): Promise<boolean> {
  const folder = await scratchFolder("rehearsal");
  try {
    const clone = join(folder, "previous");
    await codeOf(commit, clone);
    const postgres = await startEmbeddedPostgres({ dataDir: join(folder, "data"), fast: true });
    try {
      const env = { DATABASE_URL: postgres.connectionString, MAIL: "outbox" };
      await using previous = await startService({
        clone,
        env: { ...env, DEMO: "1", DATA_DIR: join(folder, "previous-data") },
      });
      const { token, projectId } = await signIn(previous.baseUrl);
      await fill(postgres.connectionString, projectId);
      const load = startLoad({
        baseUrl: () => previous.baseUrl,
        token,
        projectId,
        clients: 8,
        seed: Date.now() % 100_000,
        persistent: false,
      });
      await delay(seconds * 1_000);
      const before = load.requests;
      const watch = await watchLocks(postgres.connectionString);
      const began = performance.now();
      const migrated = await runToExit({
        args: ["--migrate-only"],
        env: { ...env, DATA_DIR: join(folder, "data-of-migration") },
      });
      const took = performance.now() - began;
      const waits = await watch.stop();
      const during = load.requests - before;
      await delay(seconds * 1_000);
      await load.stop();
      await writeFile(join(folder, "migration.log"), migrated.stdout);

      const long = waits.filter(({ ms }) => ms > longestMs);
      console.log(`Previous version: ${commit}. Migrated in ${(took / 1000).toFixed(1)} s.`);
      console.log(
        `Requests: ${load.requests}, ${during} of them during the migration; ${load.wrong.length} answered wrongly.`,
      );
      console.log(
        `Waits for locks of tables: ${waits.length}, the longest ${(waits[0]?.ms ?? 0).toFixed(0)} ms; over ${longestMs} ms: ${long.length}.`,
      );
      for (const { who, relation, mode, ms } of long.slice(0, 20))
        console.log(`  ${ms.toFixed(0)} ms  ${relation}  ${mode}  ${who || "unnamed"}`);
      for (const wrong of [...new Set(load.wrong)].slice(0, 20)) console.log(`  ${wrong}`);
      if (migrated.code !== 0) console.log(migrated.stderr, migrated.stdout);
      return migrated.code === 0 && long.length === 0 && load.wrong.length === 0;
    } finally {
      await postgres.stop();
    }
  } finally {
    await removeDataDir(folder);
  }
}

process.exitCode = (await rehearse(process.argv[2] ?? "HEAD^")) ? 0 : 1;
process.exit();
