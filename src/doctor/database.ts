/** Checks of the database server. */
import { migratedCheck } from "../database/migrated.ts";
import { requireLimited, workerUrl } from "../database/roles.ts";
import { apiUrlOf } from "../database/pooler.ts";
import { problem, warning, type Finding, type HealthCheck } from "./finding.ts";

/** Older servers lack functions that the schema uses, such as uuidv7(). */
const oldestServer = 18;
/** If clocks differ by more, clients refuse tokens and certificates, and holds end early or late. */
const clockDifferenceMs = 2000;

const version: HealthCheck = {
  name: "PostgreSQL's version",
  async check({ client }) {
    const { rows } = await client.query<{ version: string }>(
      "select current_setting('server_version') as version",
    );
    const { version: found } = rows[0]!;
    if (Number.parseInt(found, 10) >= oldestServer) return [];
    return [problem(`The server is PostgreSQL ${found}.`, `Upgrade it to PostgreSQL ${oldestServer}.`)];
  },
};

const migrations: HealthCheck = {
  name: "Migrations",
  async check({ loginUrl }) {
    const check = await migratedCheck(loginUrl, () => {});
    try {
      const missing = await check.missing();
      if (missing.length === 0) return [];
      return [
        problem(
          missing[0] === "objects"
            ? "The database has other functions and policies than this version of Plat."
            : `The database lacks ${missing.length} migrations of this version, the first ${missing[0]}.`,
          "Run `npm start -- --migrate-only`, with the version that is to run.",
        ),
      ];
    } finally {
      await check.end();
    }
  },
};

const roles: HealthCheck = {
  name: "Roles",
  async check({ config, loginUrl }) {
    const api = apiUrlOf(config, loginUrl);
    const logins = {
      AUTHENTICATOR_URL: api,
      WORKER_URL: config.workerUrl ?? workerUrl(loginUrl, api, config.rolePrefix),
    };
    const findings = await Promise.all(
      Object.entries(logins).map(async ([name, url]): Promise<Finding[]> => {
        try {
          await requireLimited(name as keyof typeof logins, url);
          return [];
        } catch (error) {
          return [
            problem(
              (error as Error).message,
              "Run `npm start -- --migrate-only`, which makes the roles and grants, or mend what the sentence names.",
            ),
          ];
        }
      }),
    );
    return findings.flat();
  },
};

const writable: HealthCheck = {
  name: "Writing",
  async check({ client }) {
    const { rows } = await client.query<{ standby: boolean; readOnly: boolean }>(
      `select pg_is_in_recovery() as standby, current_setting('default_transaction_read_only')::bool as "readOnly"`,
    );
    const { standby, readOnly } = rows[0]!;
    if (standby)
      return [
        problem(
          "The server is a standby, which takes no changes.",
          "Name the primary by DATABASE_URL, or promote this one.",
        ),
      ];
    if (readOnly)
      return [
        problem(
          "The database is read-only.",
          "`alter database … reset default_transaction_read_only`, once the reason is gone.",
        ),
      ];
    return [];
  },
};

const clock: HealthCheck = {
  name: "Clocks",
  async check({ client }) {
    const before = Date.now();
    const { rows } = await client.query<{ now: Date }>("select clock_timestamp() as now");
    // The server read its clock at some point between both.
    const difference = Math.max(
      0,
      Math.abs(rows[0]!.now.getTime() - (before + Date.now()) / 2) - (Date.now() - before),
    );
    if (difference <= clockDifferenceMs) return [];
    return [
      warning(
        `The clocks of this machine and of the database differ by ${Math.round(difference / 1000)} seconds.`,
        "Have both follow a time server (NTP): deadlines and tokens go by them.",
      ),
    ];
  },
};

const connections: HealthCheck = {
  name: "Connections",
  async check({ client }) {
    const { rows } = await client.query<{ used: number; most: number; idle: string | null }>(
      `select count(*) filter (where backend_type = 'client backend')::int as used,
         current_setting('max_connections')::int - current_setting('superuser_reserved_connections')::int as most,
         (max(now() - state_change) filter (where state like 'idle in transaction%' and now() - state_change > interval '5 minutes'))::text as idle
       from pg_stat_activity`,
    );
    const { used, most, idle } = rows[0]!;
    return [
      ...(used > 0.8 * most
        ? [
            warning(
              `${used} of ${most} connections are in use.`,
              "Lower POOL_SIZE or the number of processes, or raise max_connections.",
            ),
          ]
        : []),
      ...(idle
        ? [
            warning(
              `A transaction has been open and idle for ${idle}; rows it has seen cannot be cleaned up.`,
              "Find it in pg_stat_activity (state 'idle in transaction') and end it with pg_terminate_backend.",
            ),
          ]
        : []),
    ];
  },
};

const indexes: HealthCheck = {
  name: "Indexes",
  async check({ client }) {
    const invalid = await client.query<{ name: string }>(
      "select indexrelid::regclass::text as name from pg_index where not indisvalid order by 1",
    );
    const unused = await client.query<{ name: string; rows: number; scans: number }>(
      `select relid::regclass::text as name, n_live_tup::int as rows, seq_scan::int as scans from pg_stat_user_tables
       where n_live_tup > 100000 and seq_scan > 1000 and seq_scan > coalesce(idx_scan, 0) order by seq_tup_read desc limit 10`,
    );
    return [
      ...invalid.rows.map(({ name }) =>
        problem(
          `The index ${name} is invalid: it was not built to its end.`,
          `\`reindex index concurrently ${name}\`.`,
        ),
      ),
      ...unused.rows.map(({ name, rows, scans }) =>
        warning(
          `The table ${name} of ${rows} rows was read from end to end ${scans} times, more often than by an index.`,
          "Look for the statement in the log of slow statements, and for the index that it lacks.",
        ),
      ),
    ];
  },
};

const vacuum: HealthCheck = {
  name: "Bloat",
  async check({ client }) {
    const bloated = await client.query<{ name: string; dead: number; part: number }>(
      `select relid::regclass::text as name, n_dead_tup::int as dead, round(100.0 * n_dead_tup / (n_live_tup + n_dead_tup))::int as part
       from pg_stat_user_tables where n_dead_tup > 100000 and n_dead_tup > 0.3 * (n_live_tup + n_dead_tup) order by 2 desc limit 10`,
    );
    const old = await client.query<{ age: number }>(
      "select age(datfrozenxid)::int as age from pg_database where datname = current_database() and age(datfrozenxid) > 1000000000",
    );
    return [
      ...bloated.rows.map(({ name, dead, part }) =>
        warning(
          `${part} % of the rows of ${name} are dead (${dead}).`,
          `\`vacuum analyze ${name}\`, and look for a transaction that stays open or an autovacuum that is off.`,
        ),
      ),
      ...old.rows.map(({ age }) =>
        problem(
          `The oldest transaction number of the database is ${age} back; near two billion PostgreSQL stops taking changes.`,
          "`vacuum freeze`, and look for a transaction or replication slot that stays open.",
        ),
      ),
    ];
  },
};

const slots: HealthCheck = {
  name: "Replication slots",
  async check({ client }) {
    const { rows } = await client.query<{ name: string; bytes: string }>(
      `select slot_name as name, pg_size_pretty(pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn)) as bytes from pg_replication_slots
       where not pg_is_in_recovery() and pg_wal_lsn_diff(pg_current_wal_lsn(), restart_lsn) > 1e9`,
    );
    return rows.map(({ name, bytes }) =>
      warning(
        `The replication slot ${name} keeps ${bytes} of the log.`,
        `Repair its reader, or \`select pg_drop_replication_slot('${name}')\`: the disk fills up.`,
      ),
    );
  },
};

/** The checks of the server. */
export const databaseChecks: readonly HealthCheck[] = [
  version,
  writable,
  migrations,
  roles,
  clock,
  connections,
  indexes,
  vacuum,
  slots,
];
