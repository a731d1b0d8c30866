import { randomBytes } from "node:crypto";
import { Client, escapeIdentifier, type Pool } from "pg";
import { OrderedPool } from "../../src/database/orderedPool.ts";
import { authenticatorUrl, limitDatabase, workerUrl } from "../../src/database/roles.ts";
import { noteUsage } from "../mutants/usage.ts";

export interface TestDatabase {
  /** The owner's connection: no policy holds for it. */
  ownerUrl: string;
  /** The API's connection. */
  authenticatorUrl: string;
  /** The connection of background work. */
  workerUrl: string;
  /** Ends what is still connected and removes the database. */
  drop(): Promise<void>;
}

/**
 * A database of the test file's own, cloned from the migrated template in some 20 ms.
 * @param from "template" (migrated) or "empty".
 */
export async function createTestDatabase(from: "template" | "empty" = "template"): Promise<TestDatabase> {
  const template = new URL(testCluster());
  const name = `test_${randomBytes(6).toString("hex")}`;
  const source = from === "template" ? template.pathname.slice(1) : "template1";
  await asRoot(async (client) => {
    await client.query(`create database ${name} template ${escapeIdentifier(source)} strategy file_copy`);
    // Grants on a database are not cloned with it.
    if (from === "template") await limitDatabase(client, name);
  });
  const owner = new URL(template);
  owner.pathname = `/${name}`;
  const { PLAT_TEST_MUTANT: mutant, PLAT_TEST_USAGE: usage } = process.env;
  if (usage) await asRoot((client) => client.query(`alter database ${name} set track_functions = 'all'`));
  if (mutant && from === "template") await asRoot((client) => client.query(mutant), `/${name}`);
  return {
    ownerUrl: owner.href,
    authenticatorUrl: authenticatorUrl(owner.href),
    workerUrl: workerUrl(owner.href),
    drop: async () => {
      await asRoot(async (client) => {
        // Pools that were ended a moment ago say goodbye first: a forced end would reach them as an error.
        for (let tries = 0; tries < 100; tries++) {
          const { rowCount } = await client.query("select from pg_stat_activity where datname = $1", [name]);
          if (rowCount === 0) break;
          await client.query("select pg_sleep(0.01)");
        }
        if (usage) await noteUsage(owner.href, usage);
        await client.query(`drop database if exists ${name} with (force)`);
      });
    },
  };
}

/**
 * Connections to a database, which outlive refusals.
 * @param max at once
 */
export function poolOf(connectionString: string, max = 10): Pool {
  return new OrderedPool({ connectionString, max, connectionTimeoutMillis: 60_000 });
}

/** The test cluster's address, as the global set-up left it. */
export function testCluster(): string {
  const url = process.env.PLAT_TEST_CLUSTER;
  if (!url) throw new Error("The test cluster is not running: start the tests through `npm test`.");
  return url;
}

async function asRoot<T>(work: (client: Client) => Promise<T>, database = "/postgres"): Promise<T> {
  const url = new URL(testCluster());
  url.pathname = database;
  const client = new Client({ connectionString: url.href });
  await client.connect();
  try {
    return await work(client);
  } finally {
    await client.end();
  }
}
