import type { Client } from "pg";
import { DatabaseClient } from "./client.ts";

/**
 * Milliseconds that a migration statement may take: it may rewrite tables, or wait for another process that migrates.
 */
const MIGRATION_MS = 24 * 60 * 60 * 1000;

/** Runs work on a new connection, which is closed afterwards. */
export const onConnection = <T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> =>
  runOn(new DatabaseClient({ connectionString }), work);

/** The same for migrations, whose statements may take a day. */
export const migrateOn = <T>(connectionString: string, work: (client: Client) => Promise<T>): Promise<T> =>
  runOn(new DatabaseClient({ connectionString, answerWithin: MIGRATION_MS }), work);

async function runOn<T>(client: DatabaseClient, work: (client: Client) => Promise<T>): Promise<T> {
  // An error between two statements fails the next one; without a listener it would crash the process.
  client.on("error", () => {});
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
