/** A connection pool that serves requests in order of arrival and keeps its connections after errors. */
import { DatabaseError, Pool, type PoolClient, type PoolConfig } from "pg";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import { DatabaseClient, type DatabaseClientConfig } from "./client.ts";
import { closesConnection, DatabaseConnectionError } from "./databaseErrors.ts";
import { connectionWaits, endTiming, startTiming } from "./timings.ts";
import type { DatabaseValue } from "./databaseValue.ts";

type ConnectCallback = Parameters<Pool["connect"]>[0];

/** All callers of a pool count as one party, so they get connections in order of arrival. */
const callers: Party = { group: "callers", key: "callers" };

/**
 * A pool that serves its callers in order and keeps its connections. node-postgres' own pool does neither: its
 * `query` closes the connection after any error, even one raised by a function for the client, and a caller who
 * arrives while such a connection is being replaced is served before those who wait. A flood of refused requests then
 * cost PostgreSQL a process each, and some of the others waited until it was over.
 */
export class OrderedPool extends Pool {
  readonly #order: FairSemaphore;
  readonly #name: string;
  /** How often each connection was used. */
  readonly #uses = new WeakMap<PoolClient, number>();

  constructor(
    config: PoolConfig &
      Pick<DatabaseClientConfig, "answerWithin" | "unnamed"> & {
        max: number;
        connectionTimeoutMillis: number;
      },
  ) {
    const { connectionTimeoutMillis: connectWithin, ...rest } = config;
    // Callers wait in our order, and the client has its own connect timeout.
    super({ ...rest, connectWithin, Client: DatabaseClient } as PoolConfig);
    this.#name = config.application_name ?? "plat";
    this.#order = new FairSemaphore({
      capacity: config.max,
      timeoutMs: config.connectionTimeoutMillis,
      refusal: () => new DatabaseConnectionError("08001", new Error("No connection became free in time.")),
    });
  }

  /** Callers that wait for a connection. */
  get waiting(): number {
    return this.#order.numbers.waiting;
  }

  /**
   * @throws DatabaseConnectionError 08001 if no connection can be established, or none becomes free in time;
   * DatabaseError if the server refuses it
   */
  override connect(): Promise<PoolClient>;
  override connect(callback: ConnectCallback): void;
  override connect(callback?: ConnectCallback): Promise<PoolClient> {
    if (callback) throw new TypeError("Connections of this pool are asked for by promise.");
    return this.#connect();
  }

  async #connect(): Promise<PoolClient> {
    const startedAt = startTiming(connectionWaits);
    const leave = this.#order.tryAcquire(callers) ?? (await this.#order.acquire(callers));
    let client: PoolClient;
    try {
      this.#preferWarmest();
      client = await super.connect();
    } catch (error) {
      leave();
      if (error instanceof DatabaseError) throw error;
      throw new DatabaseConnectionError("08001", error);
    }
    endTiming(connectionWaits, startedAt, this.#name);
    this.#uses.set(client, this.#usesOf(client) + 1);
    const release = client.release.bind(client);
    client.release = (destroy) => {
      release(destroy);
      leave();
    };
    return client;
  }

  #usesOf(client: PoolClient): number {
    return this.#uses.get(client) ?? 0;
  }

  /**
   * PERF: of the idle connections, the one that was used most is next. PostgreSQL compiles functions and plans statements once for each
   * connection; the last one that became idle, which node-postgres takes, is a cold one after each burst of requests.
   */
  #preferWarmest(): void {
    const { _idle: idle = [] } = this as unknown as { _idle?: { client: PoolClient }[] };
    const last = idle.length - 1;
    let warmest = last;
    for (let i = last - 1; i >= 0; i--)
      if (this.#usesOf(idle[i]!.client) > this.#usesOf(idle[warmest]!.client)) warmest = i;
    if (warmest !== last) idle.push(...idle.splice(warmest, 1));
  }

  /**
   * Runs one statement on a connection of the pool, which is closed only if the error makes it unusable. No
   * callbacks.
   */
  override async query(...statement: DatabaseValue[]): Promise<DatabaseValue> {
    const client = await this.connect();
    // The driver reports an error before the server is ready for the next statement.
    const { promise: ready, resolve: onReady } = Promise.withResolvers<void>();
    client.once("drain", onReady).once("end", onReady);
    let isUsable = true;
    try {
      return await (client as { query(...statement: DatabaseValue[]): Promise<DatabaseValue> }).query(
        ...statement,
      );
    } catch (error) {
      isUsable = error instanceof DatabaseError && !closesConnection(error);
      if (isUsable) await ready;
      throw error;
    } finally {
      client.off("drain", onReady).off("end", onReady);
      client.release(!isUsable || client.getTransactionStatus() !== "I");
    }
  }
}

/** Internal statements that run on behalf of a party, within its share of connections. */
export function withinShare(
  pool: Pool,
  connections: FairSemaphore | undefined,
  party: Party,
): Pick<Pool, "query"> {
  if (!connections) return pool;
  const query = (...statement: DatabaseValue[]) =>
    connections.run(party, () =>
      (pool as { query(...statement: DatabaseValue[]): Promise<DatabaseValue> }).query(...statement),
    );
  return { query } as Pick<Pool, "query">;
}
