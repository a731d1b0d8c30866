/** Brings a database to this version: roles, migrations and replaceable objects. */
import type { Client } from "pg";
import {
  appliedMigrations,
  isBeforeBaseline,
  readBaseline,
  requireKnownMigrations,
  adoptBaseline,
} from "./baseline.ts";
import { readCatalog } from "./catalog.ts";
import { migrateJobRunner, runChain } from "./chain.ts";
import { migrationsFolder, readMigrations } from "./committed.ts";
import { adoptCommitted, appliedCurrent, applyCurrent, readCurrent } from "./current.ts";
import type { MigrationLog } from "./migrationLog.ts";
import { migrateOn } from "./onConnection.ts";
import { applyObjects, schemaHash } from "./objects.ts";
import { reconcile, reportDifferences, type Reconciled } from "./reconcile.ts";
import { readReference } from "./reference.ts";
import type { Reference, ReferenceOptions } from "./referenceCatalog.ts";
import { takeOwnership } from "./ownership.ts";
import { authenticatorUrl, ensureRoles, ownerUrl, workerUrl } from "./roles.ts";
import { noteSchemaState, schemaStates } from "./schemaState.ts";

export interface MigrateOptions {
  /** Login of the API; derived from the owner's connection if omitted. */
  authenticatorUrl?: string | undefined;
  /** Login of background work; derived likewise. */
  workerUrl?: string | undefined;
  logger?: MigrationLog;
  /** The folder with `committed` and `objects`. Default: that of the project. */
  folder?: string;
  /** Prefix of the login names; see ROLE_PREFIX. */
  rolePrefix?: string | undefined;
  /** Whether current.sql is applied as well: in development. */
  current?: boolean;
  /** Creates the reference. Default: in a scratch database beside the target. */
  reference?: (options: ReferenceOptions) => Promise<Reference>;
  /**
   * Called when an existing database has been changed, before it is re-read to verify that nothing is missing, and
   * again if something was. If nothing was changed, it is not re-read.
   */
  changed?: (reconciled: Reconciled) => Promise<void>;
  /** Called before an existing database is changed: whether the files have changed again. */
  isOutdated?: () => boolean;
}

/** Held while one process migrates; others wait for it. An arbitrary number that nobody else uses. */
const lockKey = 7_528_000_001n;

/**
 * Brings a database to what this version of the code needs: roles, the job runner's schema, the committed migrations,
 * the replaceable objects. Idempotent; concurrent starts take turns. A fault in the files is found before an existing
 * database is changed.
 * @param loginUrl the connection string of the login that migrates: a superuser, or a role with CREATEROLE that owns the database.
 * @returns whether anything had to be done.
 * @throws Error with a sentence for the user when PostgreSQL is older than 18, or the database is newer than the code.
 * @throws SchemaError with file and line for a fault in a file of objects.
 */
export async function migrate(loginUrl: string, options: MigrateOptions = {}): Promise<boolean> {
  return await whileLocked(loginUrl, async (login) => {
    const { logger: log, folder = migrationsFolder } = options;
    const migrations = await readMigrations(`${folder}/committed`);
    const baseline = await readBaseline(folder);
    const applied = await appliedMigrations(login);
    const old = isBeforeBaseline(applied, baseline);
    if (!old) requireKnownMigrations(applied, migrations, baseline);
    await ensureRoles(login, loginsOf(loginUrl, options), options.rolePrefix);
    await takeOwnership(login, log);
    const state = { migrations, baseline, applied, old };
    return await migrateOn(ownerUrl(loginUrl), (owner) => bring(owner, login, loginUrl, state, options));
  });
}

/** Connection strings of the service's processes. */
function loginsOf(loginUrl: string, options: MigrateOptions): string[] {
  const apiUrl = options.authenticatorUrl ?? authenticatorUrl(loginUrl, options.rolePrefix);
  return [apiUrl, options.workerUrl ?? workerUrl(loginUrl, apiUrl, options.rolePrefix)];
}

interface State {
  migrations: Awaited<ReturnType<typeof readMigrations>>;
  baseline: Awaited<ReturnType<typeof readBaseline>>;
  applied: Awaited<ReturnType<typeof appliedMigrations>>;
  /** Whether the database predates the baseline. */
  old: boolean;
}

/** Everything except roles, as the owner, who owns what is created. */
async function bring(
  owner: Client,
  login: Client,
  loginUrl: string,
  { migrations, baseline, applied, old }: State,
  options: MigrateOptions,
): Promise<boolean> {
  const { logger: log, folder = migrationsFolder } = options;
  const connectionString = ownerUrl(loginUrl);
  const isNew = applied.length === 0;
  const current = options.current ? await readCurrent(folder) : "";
  const hash = await schemaHash(folder, current);
  const isDone = !isNew && !old && (await schemaStates(owner))[0] === hash;
  const files = { folder, current, validate: true };
  // PERF: the reference is built and the database is read concurrently.
  const making = isNew || isDone ? undefined : options.reference?.(files);
  const reading = making && migrateOn(connectionString, (client) => readCatalog(client, { unknown() {} }));
  for (const ahead of [making, reading]) ahead?.catch(() => undefined);
  await migrateJobRunner(connectionString, log);

  const chain = { folder, log };
  if (isNew) {
    await runChain(owner, connectionString, chain);
    if (current) await applyCurrent(owner, folder, current, []);
    await createObjects(connectionString, folder, hash);
    return true;
  }
  if (isDone) return false;
  const reference = await (making ?? readReference(login, loginUrl, files));
  if (options.isOutdated?.()) return false;
  if (old) {
    await adoptBaseline(owner, baseline!, migrations);
    log?.info(
      { event: "migration.baseline" },
      `The database of ${baseline!.replaces.file} has adopted the rewritten migrations, up to ${baseline!.through.file}.`,
    );
  } else await adoptCommitted(owner, migrations.slice(applied.length));
  const mayReadStale = old || applied.length < migrations.length;
  if (mayReadStale) await runChain(owner, connectionString, chain);
  const isOther = options.current === true && (await appliedCurrent(owner)) !== current;
  if (isOther) {
    const chainCatalog = reference.chain ?? reference.catalog;
    await applyCurrent(owner, folder, current, chainCatalog, mayReadStale ? undefined : await reading);
    log?.info({ event: "migration.current" }, "Applied current.sql.");
  }
  const { catalog, declaredTables } = reference;
  if (options.changed) {
    const here = mayReadStale || isOther ? undefined : reading;
    const first = await reconcile(owner, catalog, { declaredTables, log, here, verify: false });
    await options.changed(first);
    if (options.isOutdated?.()) return false;
    if (first.changes.length === 0) {
      reportDifferences(first, log);
      await noteSchemaState(owner, hash);
      return true;
    }
  }
  const last = await reconcile(owner, catalog, {
    declaredTables,
    log,
    alongside: (client) => noteSchemaState(client, hash),
  });
  if (last.changes.length > 0) await options.changed?.(last);
  return true;
}

/** In a separate session: rows written by other sessions would count as declared. */
async function createObjects(connectionString: string, folder: string, hash: string): Promise<void> {
  await migrateOn(connectionString, async (client) => {
    await client.query("begin");
    await applyObjects(client, { folder, validate: true });
    await noteSchemaState(client, hash);
    await client.query("commit");
  });
}

/**
 * Roles and the job runner's schema only, on which the migrations build. For `graphile-migrate reset`, which creates
 * an empty database and then runs the migrations itself.
 */
export async function prepare(loginUrl: string, options: MigrateOptions = {}): Promise<void> {
  await whileLocked(loginUrl, async (login) => {
    await ensureRoles(login, loginsOf(loginUrl, options), options.rolePrefix);
    await migrateJobRunner(ownerUrl(loginUrl), options.logger);
  });
}

/** Runs work while holding the migration lock; the lock is released with the connection, however it ends. */
async function whileLocked<T>(connectionString: string, work: (owner: Client) => Promise<T>): Promise<T> {
  return await migrateOn(connectionString, async (owner) => {
    await requireVersion(owner);
    await owner.query("select pg_advisory_lock($1)", [lockKey]);
    return await work(owner);
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
