/** npm run doctor finds each problem that is introduced, and reports nothing else. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { mkdir, mkdtemp, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Client } from "pg";
import { generate } from "selfsigned";
import { loadConfig } from "../../src/base/config.ts";
import { checks, examine } from "../../src/doctor/doctorChecks.ts";
import type { Installation } from "../../src/doctor/finding.ts";
import { createFileStore } from "../../src/providers/files/index.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let owner: Client;
let folder: string;
let environment: NodeJS.ProcessEnv;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
  folder = await mkdtemp(join(tmpdir(), "plat-doctor-"));
  environment = { DATA_DIR: folder };
});
afterAll(async () => {
  await owner.end();
  await database.drop();
  await rm(folder, { recursive: true, force: true });
});

const installation = (more: NodeJS.ProcessEnv = {}): Omit<Installation, "client"> => {
  const config = loadConfig({ ...environment, ...more }, ["--migrate-only"]);
  const store = createFileStore({ dataDir: config.dataDir });
  return {
    config,
    environment: { ...environment, ...more },
    loginUrl: database.ownerUrl,
    store,
    now: new Date(),
  };
};

/** The findings of all checks, as `check: finding`. */
async function findings(more?: NodeJS.ProcessEnv): Promise<string[]> {
  const found: string[] = [];
  for await (const report of examine(installation(more)))
    for (const { level, finding } of report.findings) found.push(`${level} of ${report.name}: ${finding}`);
  return found;
}

/** Inserts rows that no operation could write. */
async function plant(text: string, values: unknown[] = []): Promise<void> {
  await owner.query("set session_replication_role = replica");
  await owner.query(text, values);
  await owner.query("reset session_replication_role");
}

test("a healthy installation has no findings", async () => {
  expect(await findings()).toEqual([]);
});

test("blocked work is found, with its task and its duration", async () => {
  await owner.query(`
    select graphile_worker.add_job('lead__note', run_at => now() - interval '20 minutes');
    select graphile_worker.add_job('mail__send', max_attempts => 1);
    update graphile_worker._private_jobs j set attempts = 1, last_error = 'No such mailbox'
    from graphile_worker._private_tasks t where t.id = j.task_id and t.identifier = 'mail__send';
    insert into app_private.job_deaths (identity, job_id, task, set_aside_at) values ('x', 1, 'export__requested', now())`);
  await plant(`
    insert into app_public.webhook_deliveries (organization_id, webhook_id, next_attempt_at) values (uuidv7(), uuidv7(), now() - interval '10 minutes');
    insert into app_hidden.deadlines (kind, record_id, due_at) values ('HOLD', uuidv7(), now() - interval '2 hours')`);
  expect(await findings()).toEqual([
    "problem of Jobs: 1 jobs of the task mail__send failed for the last time: No such mailbox",
    "problem of Jobs: 1 jobs of the task lead__note wait, the longest for 20 minutes.",
    "problem of Jobs that end their process: A job of the task export__requested is set aside, since its process died twice during it.",
    "problem of Webhooks: 1 deliveries of webhooks are overdue, the longest for 10 minutes.",
    "problem of Deadlines: 1 deadlines of the kind HOLD are over and nothing has come of it, the longest for 120 minutes.",
  ]);
  await plant(
    "delete from app_public.webhook_deliveries; delete from app_hidden.deadlines; delete from app_private.job_deaths; delete from graphile_worker._private_jobs",
  );
});

test("rows that violate an invariant of deals are found, with their ids", async () => {
  await plant(
    "insert into app_public.units (id, organization_id, project_id, title, number, currency, price, status) values ($1, uuidv7(), uuidv7(), 'Home', '1', 'CAD', 1, 'RESERVED')",
    ["00000000-0000-7000-8000-000000000001"],
  );
  expect(await findings()).toEqual([
    expect.stringMatching(
      /^problem of Rules of deals: Not so any more: a unit is claimed exactly as its status says\. For example .*000000000001/,
    ),
  ]);
  await plant("delete from app_public.units");
});

test("missing contents, and unreferenced files, are found", async () => {
  const [key, orphan] = ["a".repeat(64), "b".repeat(62)];
  await owner.query(
    "insert into app_private.stored_files (checksum, filemime, filesize, is_stored) values ($1, 'image/png', 1, true)",
    [key],
  );
  await mkdir(join(folder, "files", "bb"), { recursive: true });
  await writeFile(join(folder, "files", "bb", orphan), "");
  // A file of today may still get its row.
  expect(await findings()).toEqual([
    `problem of Files: The store lacks 1 contents that the database names, the first ${key}.`,
  ]);
  const twoDaysAgo = new Date(Date.now() - 2 * 86_400_000);
  await utimes(join(folder, "files", "bb", orphan), twoDaysAgo, twoDaysAgo);
  expect(await findings()).toContain(
    `warning of Files: 1 files of DATA_DIR/files belong to nothing in the database, the first bb/${orphan}.`,
  );
  await owner.query("delete from app_private.stored_files where checksum = $1", [key]);
  await rm(join(folder, "files"), { recursive: true });
});

test("an archive without a backup, or with an old one, is found", async () => {
  const ARCHIVE_DIR = join(folder, "archive");
  expect(await findings({ ARCHIVE_DIR })).toEqual([
    `problem of Disks: ARCHIVE_DIR names ${ARCHIVE_DIR}, which is not there.`,
    "problem of Backups: There is no backup.",
  ]);
  const backup = join(ARCHIVE_DIR, "series", "backups", "one");
  await mkdir(backup, { recursive: true });
  const finishedAt = new Date(Date.now() - 3.5 * 86_400_000).toISOString();
  await writeFile(join(backup, "backup.json"), JSON.stringify({ finishedAt }));
  expect(await findings({ ARCHIVE_DIR })).toEqual(["problem of Backups: The last backup is 3 days old."]);
});

test("settings that a start would refuse are found, and so is a certificate that expires soon", async () => {
  const [cert, key] = [join(folder, "cert.pem"), join(folder, "key.pem")];
  const notAfterDate = new Date(Date.now() + 5.5 * 86_400_000);
  const pair = await generate([{ name: "commonName", value: "localhost" }], { notAfterDate });
  await writeFile(cert, pair.cert);
  await writeFile(key, pair.private);
  expect(
    await findings({ TLS_CERT: cert, TLS_KEY: key, NODE_ENV: "production", SMTP_URL: "smtp://localhost" }),
  ).toEqual([
    expect.stringMatching(/^problem of Settings: STRIPE_SECRET_KEY has to be a live key in production/),
    "warning of Certificate: The certificate ends in 5 days.",
    "warning of Backups: ARCHIVE_DIR is not set, so Plat knows of no backup.",
  ]);
  // As in the middle of a renewal.
  const next = await generate([{ name: "commonName", value: "localhost" }]);
  await writeFile(cert, next.cert);
  expect(await findings({ TLS_CERT: cert, TLS_KEY: key })).toEqual([
    `problem of Certificate: TLS_KEY (${key}) is not the key of TLS_CERT (${cert}).`,
  ]);
});

test("finds a read-only database, missing migrations and a broken index", async () => {
  const name = new URL(database.ownerUrl).pathname.slice(1);
  await owner.query(`alter database ${name} set default_transaction_read_only = on`);
  expect(await findings()).toEqual(["problem of Writing: The database is read-only."]);
  await owner.query(`alter database ${name} reset default_transaction_read_only`);
  await owner.query(
    "update pg_index set indisvalid = false where indexrelid = 'app_hidden.deadlines_due'::regclass",
  );
  await owner.query(
    "delete from graphile_migrate.migrations where filename = (select max(filename) from graphile_migrate.migrations)",
  );
  expect(await findings()).toEqual([
    expect.stringMatching(
      /^problem of Migrations: The database lacks 1 migrations of this version, the first 0/,
    ),
    "problem of Indexes: The index app_hidden.deadlines_due is invalid: it was not built to its end.",
  ]);
});

test("messages of findings that a test server cannot cause", async () => {
  const says = async (name: string, rows: object[]) => {
    const client = { query: async () => ({ rows }) } as unknown as Client;
    return (await checks.find((check) => check.name === name)!.check({ ...installation(), client })).map(
      ({ finding }) => finding,
    );
  };
  expect(await says("PostgreSQL's version", [{ version: "17.6" }])).toEqual([
    "The server is PostgreSQL 17.6.",
  ]);
  expect(await says("Writing", [{ standby: true, readOnly: false }])).toEqual([
    "The server is a standby, which takes no changes.",
  ]);
  expect(await says("Clocks", [{ now: new Date(Date.now() + 60_000) }])).toEqual([
    "The clocks of this machine and of the database differ by 60 seconds.",
  ]);
  expect(await says("Connections", [{ used: 90, most: 97, idle: "00:07:00" }])).toEqual([
    "90 of 97 connections are in use.",
    "A transaction has been open and idle for 00:07:00; rows it has seen cannot be cleaned up.",
  ]);
  expect(await says("Replication slots", [{ name: "old", bytes: "12 GB" }])).toEqual([
    "The replication slot old keeps 12 GB of the log.",
  ]);
});

test("a failing check is a finding, and the others continue", async () => {
  const found: string[] = [];
  for await (const { name, findings: of } of examine({
    ...installation(),
    loginUrl: "postgres://nobody@127.0.0.1:1/none",
  }))
    found.push(`${name}: ${of[0]?.finding ?? "ok"}`);
  expect(found).toHaveLength(checks.length);
  expect(found).toContainEqual(
    expect.stringMatching(/^Jobs: This could not be looked at: connect ECONNREFUSED/),
  );
});
