import type { Pool, PoolClient } from "pg";
import { inTransaction } from "./transaction.ts";

/**
 * Runs work in a transaction with the identity of a viewer.
 * @param pool connections of plat_authenticator
 * @param settings pgSettings as made by src/database/claims.ts
 */
export async function asViewer<T>(
  pool: Pool,
  settings: Readonly<Record<string, string | undefined>>,
  work: (client: PoolClient) => Promise<T>,
): Promise<T> {
  return inTransaction(pool, async (client) => {
    await client.query("select set_config(s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify(settings),
    ]);
    return work(client);
  });
}
