/** Connection pools with the timeouts that every connection of the service has. */
import type { Pool } from "pg";
import type { Logger } from "../base/log.ts";
import { GRACE_MS } from "./client.ts";
import { OrderedPool } from "./orderedPool.ts";
import { stampRequests } from "./stampRequests.ts";

/** Default lock timeout of the service: a lock that is held for longer blocks many. */
const LOCK_TIMEOUT_MS = 5_000;

/** Options of a connection pool. Times are milliseconds. */
export interface PoolOptions {
  readonly connectionString: string;
  /** Maximum number of connections. Each SQL step of a request holds one, so: steps × requests. */
  readonly max?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
  /** A statement that takes longer is cancelled with 57014. Keep it below every timeout of the layers above. */
  readonly statementTimeout?: number;
  /** A statement that waits longer for a lock is cancelled with 55P03. Default: 5 seconds. */
  readonly lockTimeout?: number;
  /** Milliseconds to wait for a connection before failing with 08001. */
  readonly connectTimeout?: number;
  /**
   * Silence during a statement after which the connection is closed. Default: slightly longer than
   * `statementTimeout`.
   */
  readonly answerWithin?: number;
  /**
   * Whether statements use generic plans only. Planning a list takes longer than running it; statements that need
   * another plan have another text.
   */
  readonly genericPlans?: boolean;
  /** Whether it connects to a pooler, which ignores start-up options: the role has the settings; see pooler.ts. */
  readonly byPooler?: boolean;
  /** Whether named statements are prepared under their names. Default: yes. */
  readonly preparedStatements?: boolean;
  /** Called when a connection dies; the pool replaces it. */
  readonly onError?: (error: Error) => void;
}

/** Default time limit of a statement. */
export const STATEMENT_TIMEOUT_MS = 25_000;

/** PostgreSQL settings of every connection. */
export function connectionSettings({
  statementTimeout = STATEMENT_TIMEOUT_MS,
  lockTimeout = LOCK_TIMEOUT_MS,
  genericPlans = false,
}: Pick<PoolOptions, "statementTimeout" | "lockTimeout" | "genericPlans">): [name: string, value: string][] {
  return [
    ["jit", "off"],
    // Estimates for sets of permitted ids are about ten times too high in generic plans, so parallel workers must
    // cost as much more. Starting them takes longer than counting 100,000 rows.
    ...(genericPlans
      ? ([
          ["plan_cache_mode", "force_generic_plan"],
          ["parallel_setup_cost", "10000"],
        ] as [string, string][])
      : []),
    ["search_path", ""],
    ["statement_timeout", `${statementTimeout}`],
    ["lock_timeout", `${lockTimeout}`],
    ["idle_in_transaction_session_timeout", "60000"],
  ];
}

/**
 * Makes the pool for the fused adaptor. What every connection must have goes along with its start-up message and costs no
 * round trip: no just-in-time compilation (short queries lose by it), an empty search_path (every name in a statement must
 * say its schema, so nobody can slip an object of the same name in front), and the time-outs.
 *
 * Settings of the connection string's own `options` parameter hold too, except where they contradict these.
 */
export function makePool(options: PoolOptions): OrderedPool {
  const {
    max = 20,
    statementTimeout = STATEMENT_TIMEOUT_MS,
    connectTimeout = 10_000,
    onError = () => {},
  } = options;
  const { connectionString, given } = withoutOptions(options.connectionString);
  const pool = new OrderedPool({
    connectionString,
    max,
    application_name: options.applicationName ?? "plat",
    connectionTimeoutMillis: connectTimeout,
    answerWithin: options.answerWithin ?? statementTimeout + GRACE_MS,
    unnamed: options.preparedStatements === false,
    ...(!options.byPooler && { options: startUpOptions(given, options) }),
  });
  // Without these two listeners, a restart of the server would crash the process.
  pool.on("error", onError);
  pool.on("connect", (client) => void client.on("error", onError));
  return pool;
}

function startUpOptions(given: string, options: PoolOptions): string {
  return [
    given,
    ...connectionSettings(options).map(([name, value]) => `-c ${name}=${value}`),
    // In the other direction: locks of a process that disappeared are released after this time.
    "-c tcp_user_timeout=30000",
    "-c tcp_keepalives_idle=10",
    "-c tcp_keepalives_interval=5",
    "-c tcp_keepalives_count=3",
  ]
    .join(" ")
    .trim();
}

/**
 * A pool for background work, such as bulk operations or fetches that sort everything first: a statement may take
 * five minutes.
 */
export function makeWorkPool({
  log,
  ...options
}: Required<Pick<PoolOptions, "connectionString" | "max" | "applicationName">> & {
  log: Pick<Logger, "warn">;
}): Pool {
  const pool = makePool({
    ...options,
    statementTimeout: 300_000,
    onError: (error) =>
      log.warn(
        { event: "database.connection_lost", err: error, pool: options.applicationName },
        "A database connection was lost; the pool opens another one.",
      ),
  });
  pool.on("connect", stampRequests);
  return pool;
}

/** The connection string, with the lock timeout of the pools, for libraries that create their own pool. */
export function withLockTimeout(connectionString: string): string {
  const { connectionString: bare, given } = withoutOptions(connectionString);
  if (!URL.canParse(bare)) return connectionString;
  const url = new URL(bare);
  url.searchParams.set("options", `${given} -c lock_timeout=${LOCK_TIMEOUT_MS}`.trim());
  return url.href;
}

/** Extracts `options` from a connection string, which would otherwise replace ours instead of being merged. */
function withoutOptions(connectionString: string): { connectionString: string; given: string } {
  if (!URL.canParse(connectionString)) return { connectionString, given: "" };
  const url = new URL(connectionString);
  const given = url.searchParams.get("options") ?? "";
  url.searchParams.delete("options");
  return { connectionString: given === "" ? connectionString : url.href, given };
}
