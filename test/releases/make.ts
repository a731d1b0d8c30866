/**
 * Stores a data folder of this version for the tests: `npm run release:data -- <name>` starts the service once with
 * the demo, stops it, reduces the folder and writes test/releases/<name>.tar.zst. With a second argument, it uses
 * that data folder, of a service that was stopped cleanly, and does not change it.
 */
// oxlint-disable-next-line no-restricted-imports -- a command, not a test
import { execFile, spawn } from "node:child_process";
import { once } from "node:events";
import { readdir, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { promisify } from "node:util";
import { Client } from "pg";
import { startEmbeddedPostgres } from "../../src/database/embeddedServer.ts";
import { scratchFolder } from "../../src/database/scratchFolder.ts";
import { pack } from "./archive.ts";

const [name, existing] = process.argv.slice(2);
if (!name || !/^[\w.-]+$/.test(name))
  throw new Error("Say what the release is called: npm run release:data -- 1.0.0");

/** Files that a start creates again, or does not need. */
const omitted =
  /^(?:outbox|incoming|service\.lock|postgres\.log.*|certificate\.pem|key\.pem|postgres\/README|postgres\/data\/postmaster\.\w+)$/;

const folder = await scratchFolder("release");
try {
  const dataDir = join(folder, "data");
  if (existing) await promisify(execFile)("cp", ["-aL", resolve(existing), dataDir]);
  else await runOnce(dataDir);
  await shrink(dataDir);
  const archive = await pack(dataDir, (path) => !omitted.test(path));
  const file = join(import.meta.dirname, `${name}.tar.zst`);
  await writeFile(file, archive);
  console.log(`${file}: ${(archive.length / 1e6).toFixed(1)} MB`);
} finally {
  await rm(folder, { recursive: true, force: true });
}

/** Runs the service like `npm start`, until the demo's payments and jobs are completed. */
async function runOnce(dataDir: string): Promise<void> {
  const service = spawn(process.execPath, ["src/server.ts"], {
    cwd: resolve(import.meta.dirname, "../.."),
    env: { ...process.env, DATA_DIR: dataDir, PORT: "0", GRAPHILE_ENV: "production" },
    stdio: ["ignore", "pipe", "inherit"],
  });
  const gone = once(service, "exit");
  let output = "";
  service.stdout.setEncoding("utf8").on("data", (text: string) => {
    output += text;
    if (output.includes('"msg":"Plat is ready."')) service.kill("SIGTERM");
  });
  const [code] = (await gone) as [number | null];
  if (code !== 0) throw new Error(`The service ended with ${code}:\n${output}`);
}

/** Rewrites every table, and keeps only the last segment of the WAL. */
async function shrink(dataDir: string): Promise<void> {
  const postgres = await startEmbeddedPostgres({ dataDir, fast: true });
  let last: string | undefined;
  try {
    const url = new URL(postgres.connectionString);
    for (const database of ["template1", "postgres", "plat"]) {
      url.pathname = `/${database}`;
      const client = new Client({ connectionString: url.href });
      await client.connect();
      await client.query("vacuum (full, analyze)");
      await client.query("checkpoint");
      if (database === "plat") {
        await client.query("select pg_switch_wal()");
        const { rows } = await client.query<{ name: string }>(
          "select pg_walfile_name(pg_current_wal_lsn()) as name",
        );
        last = rows[0]!.name;
      }
      await client.end();
    }
  } finally {
    await postgres.stop();
  }
  const log = join(dataDir, "postgres", "data", "pg_wal");
  for (const segment of await readdir(log))
    if (/^[0-9A-F]{24}$/.test(segment) && segment !== last) await rm(join(log, segment));
}
