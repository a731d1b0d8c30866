import type { Client } from "pg";
import { DatabaseClient } from "./client.ts";

/** Milliseconds that a statement of a migration may take: it rewrites tables, or waits for another process that migrates. */
const MIGRATION_MS = 24 * 60 * 60 * 1000;

/** Runs work on a connection of its own, which is closed afterwards. */
export const onConnection = <T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> =>
  runOn(new DatabaseClient({ connectionString }), work);

/** The same for migrations, of which a statement may take a day. */
export const migrateOn = <T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> =>
  runOn(new DatabaseClient({ connectionString, answerWithin: MIGRATION_MS }), work);

async function runOn<T>(client: DatabaseClient, work: (client: Client) => Promise<T>): Promise<T> {
  // What breaks between two statements fails the next one; unheard, it would end the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
