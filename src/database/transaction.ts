import type { ClientBase, Pool, PoolClient } from "pg";

/** Runs work in a transaction of the connection: commits all of it or, if it throws, rolls back. */
export async function transaction<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  await client.query("begin");
  try {
    const result = await work();
    await client.query("commit");
    return result;
  } catch (error) {
    // If the connection broke, there is nothing to roll back, and the pool does not reuse it.
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
