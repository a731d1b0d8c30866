import type { Pool, PoolClient } from "pg";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import { DatabaseConnectionError } from "./databaseErrors.ts";
import { makeWorkPool } from "./pool.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/** The part of a pool that background engines need. */
export type WorkPool = Pick<Pool, "query" | "connect" | "end">;

/** All callers of a share count as one party. */
const askers: Party = { group: "askers", key: "askers" };

/** Milliseconds to wait for a connection of a share: as long as a statement may take. */
const SHARE_WAIT_MS = 300_000;

const refusal = () => new DatabaseConnectionError("08001", new Error("No connection became free in time."));

/**
 * A share of the pool: at most `max` connections at a time, so that a busy engine leaves some to the others. Ending
 * it ends no connections.
 */
export function shareOf(pool: Pick<Pool, "query" | "connect">, max: number): WorkPool {
  return partOf(pool, new FairSemaphore({ capacity: max, timeoutMs: SHARE_WAIT_MS, refusal }), askers);
}

/** Splits the connections of a pool by use: the last share is for callers without one. */
export function sharesOf(pool: Pick<Pool, "query" | "connect">, max: number): (party: Party) => WorkPool {
  const reserved = max > 1 ? 1 : 0;
  const places = new FairSemaphore({ capacity: max, reserved, timeoutMs: SHARE_WAIT_MS, refusal });
  return (party) => partOf(pool, places, party);
}

function partOf(pool: Pick<Pool, "query" | "connect">, places: FairSemaphore, party: Party): WorkPool {
  const connect = async (): Promise<PoolClient> => {
    const leave = await places.acquire(party);
    try {
      const client = await pool.connect();
      const release = client.release.bind(client);
      client.release = (destroy) => {
        release(destroy);
        leave();
      };
      return client;
    } catch (error) {
      leave();
      throw error;
    }
  };
  const query = (...statement: DatabaseValue[]) =>
    places.run(party, () =>
      (pool as { query(...statement: DatabaseValue[]): Promise<DatabaseValue> }).query(...statement),
    );
  return { connect, query, end: async () => {} } as WorkPool;
}

/** Source of an engine's connections: a pool shared by the process, or one of its own. */
export function workPoolOf(
  pool: Pick<Pool, "query" | "connect"> | undefined,
  own: Parameters<typeof makeWorkPool>[0],
): WorkPool {
  return pool ? shareOf(pool, own.max) : makeWorkPool(own);
}
