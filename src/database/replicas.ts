/**
 * Read replicas: standbys of the primary that answer queries. Before a query is sent to a replica, the primary reports
 * how far its write-ahead log reaches; concurrent queries of the process share that report. The query runs on a replica
 * that has replayed the log up to there. If no replica can answer it, the primary does.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { PoolClient } from "pg";
import type { OperationWork, PrimaryPosition } from "../admission/operationWork.ts";
import { connectionShares } from "../admission/semaphores.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Logger } from "../base/log.ts";
import { DatabaseClient } from "./client.ts";
import { closesConnection, sqlState } from "./databaseErrors.ts";
import type { OrderedPool } from "./orderedPool.ts";
import { makePool, type PoolOptions } from "./pool.ts";
import { withLoginOf } from "./pooler.ts";
import { parseLsn } from "./position.ts";

/** Milliseconds between two checks of a replica. */
const WATCH_MS = 250;
/** Number of checks until a change is logged: a short delay of a replica needs no action. */
const LASTING_CHECKS = 4;
/** Time limit in milliseconds for the answer of a replica, or for the position of the primary. */
const ANSWER_MS = 1_500;
/** SQLSTATE of app_private.await_replay. */
const LATE = "PLAT4";
/** Errors of the statement itself, which the primary would raise as well: coded ones, of values, and the time-out. */
const itsOwn = /^(PLAT0|22|23|P0|57014)/;

/** The statement cannot run on a replica. */
export class NeedsPrimary extends Error {
  constructor() {
    super("Transactions run on the primary.");
    this.name = "NeedsPrimary";
  }
}

/** SQL that waits until a replica has replayed a position; its own statement, so that the next ones see the data. */
export const awaitReplay = { text: "select app_private.await_replay($1)" };

const POSITION = {
  name: "position",
  text: `select pg_catalog.pg_current_wal_flush_lsn()::text as lsn,
    pg_catalog.left(pg_catalog.pg_walfile_name(pg_catalog.pg_current_wal_insert_lsn()), 8) as timeline`,
};

/** Asks the primary for its position, one question at a time, which is for all who came before it was sent. */
class Questions {
  readonly #pool: OrderedPool;
  #running: Promise<PrimaryPosition | undefined> | undefined;
  #next: Promise<PrimaryPosition | undefined> | undefined;

  constructor(pool: OrderedPool) {
    this.#pool = pool;
  }

  /** @returns undefined if the primary does not answer */
  ask(): Promise<PrimaryPosition | undefined> {
    return (this.#next ??= this.#after(this.#running));
  }

  async #after(earlier: Promise<unknown> | undefined): Promise<PrimaryPosition | undefined> {
    await earlier;
    this.#running = this.#next;
    this.#next = undefined;
    try {
      const { rows } = await this.#pool.query(POSITION);
      return { lsn: rows[0].lsn, timeline: Number.parseInt(rows[0].timeline, 16) };
    } catch {
      return undefined;
    }
  }
}

interface ReplicaState {
  readonly system: string;
  readonly timeline: number;
  readonly isStandby: boolean;
  readonly lsn: string | null;
}

const STATE_QUERY = `select s.system_identifier::text as system, c.timeline_id as timeline,
    pg_catalog.pg_is_in_recovery() as "isStandby", pg_catalog.pg_last_wal_replay_lsn()::text as lsn
  from pg_catalog.pg_control_system() s, pg_catalog.pg_control_checkpoint() c`;

/** One replica, as of its last check. */
export class Replica {
  readonly pool: OrderedPool;
  /** Fair queue for its connections. */
  readonly connections: FairSemaphore;
  readonly name: string;
  readonly #url: string;
  readonly #log: Logger;
  readonly #system: () => string | undefined;
  readonly #clients = new Set<PoolClient>();
  #state: ReplicaState | undefined;
  /** A position that it had not replayed in time. */
  #missed = 0n;
  /** The state as last logged, and the number of checks since that had another result. */
  #wasUsable: boolean | undefined;
  #checksSince = 0;
  #isEnded = false;

  constructor(options: PoolOptions & { max: number; log: Logger; system: () => string | undefined }) {
    this.#url = options.connectionString;
    const { host } = new URL(this.#url);
    this.name = host;
    this.#log = options.log;
    this.#system = options.system;
    this.pool = makePool({ ...options, connectTimeout: ANSWER_MS });
    this.pool.on("connect", (client) => {
      this.#clients.add(client);
      client.once("end", () => this.#clients.delete(client));
    });
    this.connections = connectionShares(options.max, options.max);
    this.#watch().catch(() => {});
  }

  /** Whether it has followed the primary to this timeline. */
  isOn(timeline: number): boolean {
    return this.isUsable && this.#state!.timeline === timeline;
  }

  get isUsable(): boolean {
    const state = this.#state;
    return (
      state?.isStandby === true &&
      state.system === this.#system() &&
      state.lsn !== null &&
      parseLsn(state.lsn) >= this.#missed
    );
  }

  /**
   * A query has failed on it.
   * @returns whether the primary is to answer
   */
  failed(error: unknown, { lsn }: PrimaryPosition): boolean {
    if (error instanceof NeedsPrimary) return true;
    const state = sqlState(error);
    if (state === undefined || itsOwn.test(state)) return false;
    if (state === LATE) this.#missed = parseLsn(lsn);
    if (closesConnection(error)) this.#state = undefined;
    return true;
  }

  async #watch(): Promise<void> {
    let client: DatabaseClient | undefined;
    while (!this.#isEnded) {
      let reason: unknown;
      try {
        client ??= await this.#connect();
        this.#state = (await client.query(STATE_QUERY)).rows[0] as ReplicaState;
      } catch (error) {
        reason = error;
        this.#state = undefined;
        client?.end().catch(() => {});
        client = undefined;
        // A host that vanished does not answer: queries that wait for it go to the primary.
        for (const waiting of this.#clients) cut(waiting);
      }
      this.#tell(reason);
      await pause(WATCH_MS, undefined, { ref: false });
    }
    await client?.end().catch(() => {});
  }

  async #connect(): Promise<DatabaseClient> {
    const client = new DatabaseClient({
      connectionString: this.#url,
      application_name: "plat-replica",
      connectWithin: ANSWER_MS,
      answerWithin: ANSWER_MS,
    });
    await client.connect();
    return client;
  }

  #tell(error: unknown): void {
    if (this.#system() === undefined) return;
    this.#checksSince = this.isUsable === this.#wasUsable ? 0 : this.#checksSince + 1;
    if (this.#checksSince < LASTING_CHECKS) return;
    const isFirst = this.#wasUsable === undefined;
    this.#wasUsable = this.isUsable;
    if (!this.isUsable)
      this.#log.warn(
        { event: "database.replica_left_out", err: error, replica: this.name, state: this.#state },
        "A read replica lags, is unreachable or is not a standby of this database; queries go to the primary until it recovers.",
      );
    else if (!isFirst)
      this.#log.info(
        { event: "database.replica_back", replica: this.name },
        "A read replica has recovered and receives queries again.",
      );
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    await this.pool.end();
  }
}

const cut = (client: unknown): void =>
  (client as { connection: { stream: { destroy(): void } } }).connection.stream.destroy();

/** A replica for an operation, and the position that it has to replay. */
export interface ChosenReplica {
  readonly replica: Replica;
  readonly position: PrimaryPosition;
}

export class Replicas {
  readonly #replicas: readonly Replica[];
  readonly #primary: OrderedPool;
  readonly #questions: Questions;
  #system: string | undefined;
  #turn = 0;
  /** Statements of queries that replicas answered, and the primary. */
  readonly reads = { replica: 0, primary: 0 };

  /** @param primaryUrl the connection string of the API, to the server */
  constructor(
    urls: readonly string[],
    primaryUrl: string,
    options: Omit<PoolOptions, "connectionString"> & { max: number; log: Logger },
  ) {
    this.#primary = makePool({
      connectionString: primaryUrl,
      max: 1,
      applicationName: "plat-position",
      statementTimeout: ANSWER_MS,
      answerWithin: ANSWER_MS,
      connectTimeout: ANSWER_MS,
    });
    this.#questions = new Questions(this.#primary);
    this.#replicas = urls.map(
      (url) =>
        new Replica({
          ...options,
          connectionString: withLoginOf(url, primaryUrl),
          system: () => this.#system,
        }),
    );
  }

  /** @param system database system identifier of the primary; no replica is used before it is known */
  start(system: string): void {
    this.#system = system;
  }

  /** @returns undefined if the primary has to answer */
  async choose(work: OperationWork): Promise<ChosenReplica | undefined> {
    if (!work.isQuery || work.needsPrimary) return undefined;
    // Nobody waits for the position if there is no use for it.
    if (!this.#replicas.some(({ isUsable }) => isUsable)) return undefined;
    const position = await (work.primaryPosition ??= this.#questions.ask());
    if (!position) return undefined;
    if (work.notBefore !== undefined && parseLsn(work.notBefore) > parseLsn(position.lsn)) return undefined;
    const usable = this.#replicas.filter((replica) => replica.isOn(position.timeline));
    const replica = usable[this.#turn++ % usable.length];
    return replica && { replica, position };
  }

  /** Connections by replica. */
  get pools(): Record<string, OrderedPool> {
    return Object.fromEntries(this.#replicas.map(({ name, pool }) => [`replica ${name}`, pool]));
  }

  async end(): Promise<void> {
    await Promise.all([this.#primary.end(), ...this.#replicas.map((replica) => replica.end())]);
  }
}
