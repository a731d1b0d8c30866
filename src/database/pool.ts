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
  /** Told when a connection dies; the pool replaces it by itself. */
  readonly onError?: (error: Error) => void;
}

/**
 * Makes the pool for the fused adaptor. What every connection must have goes along with its start-up message and costs no
 * round trip: no just-in-time compilation (short queries lose by it), an empty search_path (every name in a statement must
 * say its schema, so nobody can slip an object of the same name in front), and the time-outs.
 *
 * Settings of the connection string's own `options` parameter hold too, except where they contradict these.
 */
export function makePool(options: PoolOptions): OrderedPool {
  const { max = 20, statementTimeout = 25_000, connectTimeout = 10_000, onError = () => {} } = options;
  const { lockTimeout = LOCK_TIMEOUT_MS, genericPlans = false } = options;
  const { connectionString, given } = withoutOptions(options.connectionString);
  const pool = new OrderedPool({
    connectionString,
    max,
    application_name: options.applicationName ?? "plat",
    connectionTimeoutMillis: connectTimeout,
    answerWithin: options.answerWithin ?? statementTimeout + GRACE_MS,
    options: [
      given,
      "-c jit=off",
      // The sets of ids that permissions give are of unknown size to a plan for any values, which takes them for ten times what they mostly are: parallel
      // workers have to be worth as much more. To start them takes longer than to count 100,000 rows.
      ...(genericPlans ? ["-c plan_cache_mode=force_generic_plan", "-c parallel_setup_cost=10000"] : []),
      "-c search_path=",
      `-c statement_timeout=${statementTimeout}`,
      `-c lock_timeout=${lockTimeout}`,
      "-c idle_in_transaction_session_timeout=60000",
      // The other way about: what a process held that vanished without a word is free after this.
      "-c tcp_user_timeout=30000",
      "-c tcp_keepalives_idle=10",
      "-c tcp_keepalives_interval=5",
      "-c tcp_keepalives_count=3",
    ]
      .join(" ")
      .trim(),
  });
  // Without these two listeners a server that restarts would end the process.
  pool.on("error", onError);
  pool.on("connect", (client) => void client.on("error", onError));
  return pool;
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
