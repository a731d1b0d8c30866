import type { Pool, PoolClient } from "pg";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import { DatabaseConnectionError } from "./databaseErrors.ts";
import { makeWorkPool } from "./pool.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/** What the engines of background work need of a pool. */
export type WorkPool = Pick<Pool, "query" | "connect" | "end">;

/** Everybody who asks for a connection of a share. */
const askers: Party = { group: "askers", key: "askers" };

/** How long somebody waits for the connections of a share, in milliseconds: as long as a statement of its own may take. */
const SHARE_WAIT_MS = 300_000;

const refusal = () => new DatabaseConnectionError("08001", new Error("No connection became free in time."));

/**
 * A part of the pool's connections: at most `max` of them at a time, so that an engine with much to do leaves some to the others. Its end is the
 * end of nobody's connections.
 */
export function shareOf(pool: Pick<Pool, "query" | "connect">, max: number): WorkPool {
  return partOf(pool, new FairSemaphore({ capacity: max, timeoutMs: SHARE_WAIT_MS, refusal }), askers);
}

/** The connections of a pool by whom they are used for: the last one is only for who has none. */
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

/** Where an engine has its connections from: a pool that all of a process share, or one of its own. */
export function workPoolOf(
  pool: Pick<Pool, "query" | "connect"> | undefined,
  own: Parameters<typeof makeWorkPool>[0],
): WorkPool {
  return pool ? shareOf(pool, own.max) : makeWorkPool(own);
}
