import type { ClientBase, Pool, PoolClient } from "pg";

/** Does the work in a transaction of the connection: all of it is committed, or, where it throws, nothing. */
export async function transaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    // Where the connection broke, nothing is left to roll back, and the pool gives it to nobody else.
    await client.query("rollback").catch(() => {});
    throw error;
  }
}

/** The same on a connection of the pool. */
export async function inTransaction<T>(
  pool: Pick<Pool, "connect">,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  const client = await pool.connect();
  try {
    return await transaction(client, () => work(client));
  } finally {
    client.release();
  }
}
