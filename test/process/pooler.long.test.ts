/** PgBouncer between the service and its database: apt-get install pgbouncer. */
import { beforeEach, afterEach, expect, test } from "@jest/globals";
import { onConnection } from "../../src/database/onConnection.ts";
import { requireOwnSessions } from "../../src/database/ownSessions.ts";
import { requirePooler, setRoleDefaults, withLoginOf } from "../../src/database/pooler.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { openStream } from "../harness/eventStream.ts";
import { signIn, startLoad } from "../harness/load.ts";
import { startPooler, tracksStatements, type Pooler } from "../harness/pgbouncer.ts";
import { runToExit, startService, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";

let database: TestDatabase;
let pooler: Pooler;
/** The owner's login through the pooler. */
const by: Pooler["url"] = (mode) => pooler.url(mode);
const startIt = () => startPooler(database.ownerUrl, [database.ownerUrl, database.authenticatorUrl]);

beforeEach(async () => {
  database = await createTestDatabase("demo");
  pooler = await startIt();
}, 60_000);
afterEach(async () => {
  await pooler?.[Symbol.asyncDispose]();
  await database.drop();
});

/** The API's login at the pooler. */
const api = (mode: "transaction" | "session") => withLoginOf(by(mode), database.authenticatorUrl);

test("detects a pooler in transaction mode", async () => {
  await expect(requireOwnSessions("WORKER_URL", by("transaction"))).rejects.toThrow(
    /^WORKER_URL leads to a pooler that shares sessions, such as PgBouncer in transaction mode\./,
  );
  await requireOwnSessions("WORKER_URL", by("session"));
  await requireOwnSessions("WORKER_URL", database.ownerUrl);
}, 60_000);

test("unsupported configurations are refused at the start with one sentence, and leave no lock behind", async () => {
  await using data = await temporaryFolder();
  const refusal = async (env: NodeJS.ProcessEnv) =>
    (await runToExit({ env: { DATA_DIR: data.path, ...env }, args: ["--migrate-only"] })).stderr;
  expect(await refusal({ DATABASE_URL: by("transaction") })).toMatch(
    /^DATABASE_URL leads to a pooler that shares sessions.* name the server itself, or beside it by DIRECT_DATABASE_URL\.\n$/,
  );
  expect(await refusal({ DATABASE_URL: by("transaction"), DIRECT_DATABASE_URL: by("transaction") })).toMatch(
    /^DIRECT_DATABASE_URL leads to a pooler that shares sessions.* name the server itself\.\n$/,
  );
  const locks = await onConnection(database.ownerUrl, (client) =>
    client.query("select from pg_locks where locktype = 'advisory'"),
  );
  expect(locks.rowCount).toBe(0);

  const { authenticatorUrl } = database;
  await expect(requirePooler(api("transaction"), authenticatorUrl, false)).rejects.toThrow(
    /Run: alter role "plat_authenticator" in database "test_\w+" set plan_cache_mode = 'force_generic_plan'; .*RECONNECT/,
  );
  await onConnection(database.ownerUrl, (owner) => setRoleDefaults(owner, "plat_authenticator"));
  await expect(requirePooler(api("transaction"), authenticatorUrl, false)).rejects.toThrow(
    /^The pooler has connections that are older/,
  );
  await pooler[Symbol.asyncDispose]();
  pooler = await startIt();
  await requirePooler(api("transaction"), authenticatorUrl, false);
  const message = await requirePooler(api("transaction"), authenticatorUrl, true).then(
    () => "",
    (error: Error) => error.message,
  );
  expect(message).toMatch(
    tracksStatements() ? /^$/ : /keeps no track of prepared statements: set PREPARED_STATEMENTS=0/,
  );
  await requirePooler(api("session"), authenticatorUrl, true);
  await using other = { ...(await createTestDatabase()), [Symbol.asyncDispose]: () => other.drop() };
  await expect(requirePooler(api("transaction"), other.authenticatorUrl, false)).rejects.toThrow(
    /^DATABASE_URL and DIRECT_DATABASE_URL lead to different databases/,
  );
}, 120_000);

/** Values of PREPARED_STATEMENTS. */
const preparing = tracksStatements() ? ["0", "1"] : ["0"];

test.each(preparing)(
  "the whole service works through one, with PREPARED_STATEMENTS=%s, and leaves nothing in shared sessions",
  async (prepared) => {
    await using data = await temporaryFolder();
    const { ownerUrl } = database;
    await using service = await startService({
      env: {
        DATABASE_URL: by("transaction"),
        DIRECT_DATABASE_URL: ownerUrl,
        PREPARED_STATEMENTS: prepared,
        DATA_DIR: data.path,
        LOG_LEVEL: "info",
      },
    });
    const { token, projectId, organizationId } = await signIn(service.baseUrl);
    const load = startLoad({
      baseUrl: () => service.baseUrl,
      token,
      projectId,
      clients: 12,
      seed: 1,
      persistent: false,
    });
    const stream = await openStream(service.baseUrl, token, { organizationId });
    await until(
      () => load.requests,
      (requests) => requests > 300,
      { withinMs: 60_000 },
    );

    await onConnection(ownerUrl, async (locker) => {
      // Expired and locked: readers do not wait, and read the stored state.
      await locker.query("begin");
      const { rowCount } = await locker.query(
        `with due as (select d.kind, d.record_id from app_hidden.deadlines d where d.organization_id = $1 limit 1)
       update app_hidden.deadlines d set due_at = now() - interval '1 minute' from due
       where d.kind = due.kind and d.record_id = due.record_id`,
        [organizationId],
      );
      expect(rowCount).toBe(1);
      await locker.query("commit");
      await locker.query("begin");
      await locker.query("select from app_hidden.deadlines where due_at <= now() for update");
      const before = load.requests;
      await until(
        () => load.requests,
        (requests) => requests > before + 200,
        { withinMs: 60_000 },
      );
      await locker.query("rollback");
    });

    await load.stop();
    expect(load.wrong).toEqual([]);
    await until(
      () => stream.events.length,
      (stored) => stored >= load.acknowledged.size,
    );
    stream.close();

    const left = await onConnection(api("transaction"), (client) =>
      client.query(
        // Statements tracked by PgBouncer have names of its own.
        `select (select count(*)::int from pg_prepared_statements where name not like 'PGBOUNCER_%') as prepared,
         current_user::text as role, coalesce(current_setting('plat.stale_reads', true), '') as stale,
         coalesce(current_setting('plat.user_id', true), '') as viewer,
         (select count(*)::int from pg_listening_channels()) as channels`,
      ),
    );
    expect(left.rows).toEqual([
      { prepared: 0, role: "plat_authenticator", stale: "", viewer: "", channels: 0 },
    ]);
    const { rows: sessions } = await onConnection(ownerUrl, (client) =>
      client.query(
        `select from pg_stat_activity where datname = current_database() and application_name in ('plat-api', 'plat-pages')`,
      ),
    );
    // The number of connections of the pooler, for twelve clients.
    expect([1, 2, 3, 4]).toContain(sessions.length);
    expect(await service.stop()).toMatchObject({ code: 0 });
  },
  180_000,
);
