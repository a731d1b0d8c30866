import { randomBytes } from "node:crypto";
import { Client, escapeIdentifier, type Pool } from "pg";
import { OrderedPool } from "../../src/database/orderedPool.ts";
import { authenticatorUrl, limitDatabase, workerUrl } from "../../src/database/roles.ts";
import { noteUsage, observe } from "../mutants/usage.ts";

export interface TestDatabase {
  /** Connection string of the owner, to whom no policy applies. */
  ownerUrl: string;
  /** Connection string of the API. */
  authenticatorUrl: string;
  /** Connection string of background work. */
  workerUrl: string;
  /** Ends open connections and drops the database. */
  drop(): Promise<void>;
}

/**
 * Creates a database for the test file by cloning one, in about 20 ms.
 * @param from "template" (migrated), "demo" (with the demo data, without pictures) or "empty".
 */
export async function createTestDatabase(
  from: "template" | "demo" | "empty" = "template",
): Promise<TestDatabase> {
  const template = new URL(testCluster());
  const name = `test_${randomBytes(6).toString("hex")}`;
  const { PLAT_TEST_MUTANT: mutant, PLAT_TEST_USAGE: usage } = process.env;
  // Loading executes the code under test, which mutation tests may have changed.
  const loads = from === "demo" && Boolean(mutant || usage);
  if (from === "demo" && !loads) await asRoot(makeDemo);
  const migrated = template.pathname.slice(1);
  const source = { template: migrated, demo: loads ? migrated : demoName, empty: "template1" }[from];
  await asRoot((client) => clone(client, source, name, from !== "empty"));
  const owner = new URL(template);
  owner.pathname = `/${name}`;
  if (usage) await asRoot((client) => client.query(observe(name)));
  if (mutant && from !== "empty") await asRoot((client) => client.query(mutant), `/${name}`);
  if (loads) await loadDemoInto(owner.href);
  return {
    ownerUrl: owner.href,
    authenticatorUrl: authenticatorUrl(owner.href),
    workerUrl: workerUrl(owner.href),
    drop: async () => {
      await asRoot(async (client) => {
        // Pools that are being ended close their connections first: terminating these would be reported as an error.
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

async function clone(client: Client, source: string, name: string, isMigrated: boolean): Promise<void> {
  await client.query(`create database ${name} template ${escapeIdentifier(source)} strategy file_copy`);
  // Grants on a database are not cloned with it.
  if (!isMigrated) return;
  await limitDatabase(client, name);
  // Tests kill workers, and do not wait until these are considered dead.
  await client.query(`alter database ${name} set plat.worker_grace = '0 s'`);
}

const demoName = "demo";
/** Number of the advisory lock that the creating process holds. */
const demoLock = 7_528_000_003n;

/** Creates the database with the demo data, once per run: loading takes about thirty times as long as a clone. */
async function makeDemo(client: Client): Promise<void> {
  await client.query("select pg_advisory_lock($1)", [demoLock]);
  const { rowCount } = await client.query("select from pg_database where datname = $1", [demoName]);
  if (rowCount !== 0) return;
  const unfinished = `${demoName}_unfinished`;
  const url = new URL(testCluster());
  await client.query(`drop database if exists ${unfinished} with (force)`);
  await clone(client, url.pathname.slice(1), unfinished, true);
  url.pathname = `/${unfinished}`;
  await loadDemoInto(url.href);
  await client.query(`alter database ${unfinished} rename to ${demoName}`);
}

async function loadDemoInto(ownerUrl: string): Promise<void> {
  const { loadDemo } = await import("../../src/demo/index.ts");
  await loadDemo(ownerUrl);
}

/**
 * Connections to a database, which remain open after errors of statements.
 * @param max maximum number
 */
export function poolOf(connectionString: string, max = 10): Pool {
  return new OrderedPool({ connectionString, max, connectionTimeoutMillis: 60_000 });
}

/** Connection string of the test cluster, from the global set-up. */
export function testCluster(): string {
  const url = process.env.PLAT_TEST_CLUSTER;
  if (!url) throw new Error("The test cluster is not running: start the tests through `npm test`.");
  return url;
}

/**
 * Runs work while no other process of the run does the same.
 * @param lock a number of an advisory lock that is used for nothing else
 */
export async function whileLocked(lock: bigint, work: () => Promise<void>): Promise<void> {
  await asRoot(async (client) => {
    await client.query("select pg_advisory_lock($1)", [lock]);
    await work();
  });
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
