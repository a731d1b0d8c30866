import type { Pool } from "pg";
import type { Logger } from "../base/log.ts";
import { OrderedPool } from "./orderedPool.ts";
import { stampRequests } from "./stampRequests.ts";

/** How long anything of the service waits for a lock, unless it says so itself: whoever holds one for longer holds up many. */
const LOCK_TIMEOUT_MS = 5_000;

/** How much longer than its `statement_timeout` an answer may be on its way, until the connection is given up. */
const GRACE_MS = 3_000;

/** What a pool of connections needs to know. Times are milliseconds. */
export interface PoolOptions {
  readonly connectionString: string;
  /** Most connections at once. Each SQL step of a request holds one, so: steps × requests. */
  readonly max?: number;
  /** Shown in pg_stat_activity. */
  readonly applicationName?: string;
  /** A statement that takes longer is cancelled with 57014. Keep it below every time-out of the layers above. */
  readonly statementTimeout?: number;
  /** A statement that waits longer than this for a lock of somebody else is cancelled with 55P03; 5 seconds unless given. */
  readonly lockTimeout?: number;
  /** How long to wait for a connection before giving up with 08001. */
  readonly connectTimeout?: number;
  /** Silence during a statement after which the connection is given up; a little longer than `statementTimeout` unless given. */
  readonly answerWithin?: number;
  /**
   * Whether a statement is planned once for all values of its parameters, and never for the ones it comes with. Planning a list takes
   * longer than running it; the texts of our statements differ wherever another plan is wanted.
   */
  readonly genericPlans?: boolean;
  /** Where a pooler stands between, which hands on no start-up options: the settings are those of the role; see pooler.ts. */
  readonly byPooler?: boolean;
  /** Whether statements keep the names that they are given, by which the server keeps them prepared; they do unless told otherwise. */
  readonly preparedStatements?: boolean;
  /** Told when a connection dies; the pool replaces it by itself. */
  readonly onError?: (error: Error) => void;
}

/** How long a statement may take, unless told otherwise. */
const STATEMENT_TIMEOUT_MS = 25_000;

/** What every connection must have, by the names of PostgreSQL. */
export function connectionSettings({
  statementTimeout = STATEMENT_TIMEOUT_MS,
  lockTimeout = LOCK_TIMEOUT_MS,
  genericPlans = false,
}: Pick<PoolOptions, "statementTimeout" | "lockTimeout" | "genericPlans">): [name: string, value: string][] {
  return [
    ["jit", "off"],
    // The sets of ids that permissions give are of unknown size to a plan for any values, which takes them for ten times what they mostly are: parallel
    // workers have to be worth as much more. To start them takes longer than to count 100,000 rows.
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
  // Without these two listeners a server that restarts would end the process.
  pool.on("error", onError);
  pool.on("connect", (client) => void client.on("error", onError));
  return pool;
}

function startUpOptions(given: string, options: PoolOptions): string {
  return [
    given,
    ...connectionSettings(options).map(([name, value]) => `-c ${name}=${value}`),
    // The other way about: what a process held that vanished without a word is free after this.
    "-c tcp_user_timeout=30000",
    "-c tcp_keepalives_idle=10",
    "-c tcp_keepalives_interval=5",
    "-c tcp_keepalives_count=3",
  ]
    .join(" ")
    .trim();
}

/** A pool for work that nobody waits for, such as that of many rows or a fetch that sorts everything first: a statement may take five minutes. */
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

/** The connection string, with the same limit on waiting for locks as the pools have, for those that make their own pool. */
export function withLockTimeout(connectionString: string): string {
  const { connectionString: bare, given } = withoutOptions(connectionString);
  if (!URL.canParse(bare)) return connectionString;
  const url = new URL(bare);
  url.searchParams.set("options", `${given} -c lock_timeout=${LOCK_TIMEOUT_MS}`.trim());
  return url.href;
}

/** Takes `options` out of a connection string, which otherwise replaces ours instead of joining them. */
function withoutOptions(connectionString: string): { connectionString: string; given: string } {
  if (!URL.canParse(connectionString)) return { connectionString, given: "" };
  const url = new URL(connectionString);
  const given = url.searchParams.get("options") ?? "";
  url.searchParams.delete("options");
  return { connectionString: given === "" ? connectionString : url.href, given };
}
