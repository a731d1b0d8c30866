import { Client } from "pg";

/** Runs work on a connection of its own, which is closed afterwards. */
export async function onConnection<T>(
  connectionString: string,
  work: (client: Client) => Promise<T>,
): Promise<T> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
