import { randomUUID } from "node:crypto";
import { createRequire } from "node:module";
import { Logger as WorkerLogger, runMigrations } from "graphile-worker";
import { Client } from "pg";
import { readChapters, migrationsFolder, type Chapter } from "./committed.ts";
import { authenticatorUrl, ensureRoles } from "./roles.ts";

const require = createRequire(import.meta.url);
const { migrate: runChapters, Logger } = require("graphile-migrate") as typeof import("graphile-migrate");
const { clearAllPools } = require("graphile-migrate/dist/pgReal.js") as { clearAllPools(): void };

export interface MigrateOptions {
  /** How the API logs in; derived from the owner's connection when absent. */
  authenticatorUrl?: string | undefined;
  logger?: { info(message: string): void; warn(message: string): void; error(message: string): void };
}

/** Held while one process migrates; the others wait for it. Any number that nobody else uses. */
const lockKey = 7_528_000_001n;

/**
 * Brings a database to what this version of the code needs: roles, the job runner's schema, the committed
 * chapters. Idempotent; concurrent starts take turns.
 * @param connectionString the owner's.
 * @throws Error with a sentence for the user when PostgreSQL is older than 18, or the database is newer than the code.
 */
export async function migrate(connectionString: string, options: MigrateOptions = {}): Promise<void> {
  const loginUrl = options.authenticatorUrl ?? authenticatorUrl(connectionString);
  const owner = new Client({ connectionString });
  await owner.connect();
  try {
    await requireVersion(owner);
    await owner.query("select pg_advisory_lock($1)", [lockKey]);
    const chapters = await readChapters();
    const applied = await requireKnownChapters(owner, chapters);
    await ensureRoles(owner, loginUrl);
    await migrateJobRunner(connectionString, options);
    await runCommitted(owner, connectionString, options);
    // What the triggers of events write follows columns, comments and names that the chapters may have changed. Not
    // without a new chapter: it locks every table of records for a moment.
    if (applied < chapters.length) await owner.query("select app_private.refresh_events()");
  } finally {
    await owner.end();
  }
}

/**
 * graphile-migrate keeps its connection for a while and ends the whole process when that breaks, as it does when
 * the embedded database stops meanwhile. So its pool is closed at once, and its connection awaited to be gone.
 */
async function runCommitted(owner: Client, connectionString: string, options: MigrateOptions): Promise<void> {
  const url = new URL(connectionString);
  const application = `plat migrate ${randomUUID()}`;
  url.searchParams.set("application_name", application);
  try {
    await runChapters({ connectionString: url.href, migrationsFolder, logger: chapterLogger(options) });
  } finally {
    clearAllPools();
    for (;;) {
      const { rowCount } = await owner.query("select from pg_stat_activity where application_name = $1", [
        application,
      ]);
      if (rowCount === 0) break;
      await owner.query("select pg_sleep(0.005)");
    }
  }
}

/**
 * Roles and the job runner's schema only: what the chapters build upon. For `graphile-migrate reset`, which
 * makes an empty database and then runs the chapters itself.
 */
export async function prepare(connectionString: string, options: MigrateOptions = {}): Promise<void> {
  const owner = new Client({ connectionString });
  await owner.connect();
  try {
    await requireVersion(owner);
    await ensureRoles(owner, options.authenticatorUrl ?? authenticatorUrl(connectionString));
    await migrateJobRunner(connectionString, options);
  } finally {
    await owner.end();
  }
}

async function migrateJobRunner(connectionString: string, { logger }: MigrateOptions): Promise<void> {
  // Its library reports an idle connection's end as an error; the messages go where ours go.
  await runMigrations({
    connectionString,
    logger: new WorkerLogger(() => (level, message) => {
      if (level === "error" || level === "warning") logger?.warn(message);
    }),
  });
}

function chapterLogger({ logger }: MigrateOptions) {
  return new Logger(() => (level, message) => {
    if (level === "error") logger?.error(message);
    else if (level === "info" && message.includes("Running migration"))
      logger?.info(message.replace(/^graphile-migrate: /, ""));
  });
}

async function requireVersion(owner: Client): Promise<void> {
  const { rows } = await owner.query<{ number: number; name: string }>(
    "select current_setting('server_version_num')::int as number, current_setting('server_version') as name",
  );
  const { number, name } = rows[0]!;
  if (number < 180_000)
    throw new Error(
      `Plat needs PostgreSQL 18 or newer, and DATABASE_URL leads to version ${name}: upgrade the server.`,
    );
}

async function requireKnownChapters(owner: Client, chapters: Chapter[]): Promise<number> {
  const { rows: there } = await owner.query(
    "select to_regclass('graphile_migrate.migrations') is not null as yes",
  );
  if (!there[0]?.yes) return 0;
  const { rows: applied } = await owner.query<{ filename: string; hash: string }>(
    "select filename, hash from graphile_migrate.migrations order by filename",
  );
  for (const { filename, hash } of applied) {
    const chapter = chapters.find(({ key }) => key === filename);
    if (!chapter)
      throw new Error(
        `The database is newer than this version of Plat: it holds migration ${filename}, which is unknown here. Start the version that made it, or a later one.`,
      );
    if (chapter.hash !== hash)
      throw new Error(
        `Migration ${chapter.file} is not the one that this database was built with: a committed migration must not be edited, add a new one.`,
      );
  }
  return applied.length;
}
