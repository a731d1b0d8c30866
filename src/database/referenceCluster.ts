import { randomBytes } from "node:crypto";
import type { Client } from "pg";
import { DatabaseClient } from "./client.ts";
import { readCatalog, type CatalogObject } from "./catalog.ts";
import { migrateJobRunner, runChain } from "./chain.ts";
import { migrationsHash } from "./committed.ts";
import { removeDataDir } from "./dataDirs.ts";
import { startEmbeddedPostgres } from "./embeddedServer.ts";
import { migrateOn } from "./onConnection.ts";
import { readObjectsOn, type Reference, type ReferenceOptions } from "./referenceCatalog.ts";
import { authenticatorUrl, ensureRoles, limitDatabase, ownerUrl, workerUrl } from "./roles.ts";
import { removeLeftoverFolders, scratchFolder } from "./scratchFolder.ts";

/** A scratch cluster for references, if the owner may not create databases or references are built repeatedly. */
export interface ReferenceCluster {
  /** Runs the migrations in advance, so that the first reference is ready sooner. */
  prepare(folder: string): Promise<void>;
  make(options: ReferenceOptions): Promise<Reference>;
  stop(): Promise<void>;
}

/** A database with the migrations, and its catalog. */
interface Chain {
  hash: string;
  name: string;
  catalog: CatalogObject[];
}

/** The server of a scratch cluster. */
export interface ScratchServer {
  /** The owner of the cluster. */
  connectionString: string;
  /** Stops it and removes its folder. */
  stop(): Promise<void>;
}

/** Starts a server without durability. */
export async function startScratchServer(): Promise<ScratchServer> {
  await removeLeftoverFolders();
  const folder = await scratchFolder("reference");
  try {
    const { connectionString, stop } = await startEmbeddedPostgres({ dataDir: folder, fast: true });
    return {
      connectionString,
      stop: async () => {
        await stop();
        await removeDataDir(folder);
      },
    };
  } catch (error) {
    await removeDataDir(folder);
    throw error;
  }
}

/** Starts a separate cluster. */
export async function startReferenceCluster(): Promise<ReferenceCluster> {
  const server = await startScratchServer();
  try {
    const references = await openReferences(server.connectionString);
    return {
      ...references,
      stop: async () => {
        await references.stop();
        await server.stop();
      },
    };
  } catch (error) {
    await server.stop();
    throw error;
  }
}

/**
 * Builds references on a scratch server; the database with the migrations is built once and cloned for each
 * reference.
 * @param serverUrl of its owner
 * @returns an object whose disposal leaves the server running
 */
export async function openReferences(serverUrl: string): Promise<ReferenceCluster> {
  const loginAt = (database: string) => Object.assign(new URL(serverUrl), { pathname: `/${database}` }).href;
  const at = (database: string) => ownerUrl(loginAt(database));
  const root = new DatabaseClient({ connectionString: loginAt("postgres") });
  let chain: Promise<Chain> | undefined;
  /** A clone of the migrated database for the next reference. */
  let spare: Promise<{ hash: string; name: string }> | undefined;
  let dropping: Promise<unknown> = Promise.resolve();
  try {
    await root.connect();
    await ensureRoles(root, [authenticatorUrl(serverUrl), workerUrl(serverUrl)]);
  } catch (error) {
    await root.end();
    throw error;
  }

  const makeChain = async (migrations: string, hash: string): Promise<Chain> => {
    const name = `chain_${randomBytes(4).toString("hex")}`;
    await root.query(`create database ${name} template template0`);
    await limitDatabase(root, name);
    const catalog = await migrateOn(at(name), async (client) => {
      await migrateJobRunner(at(name));
      await runChain(client, at(name), { folder: migrations });
      return await readCatalog(client);
    });
    return { hash, name, catalog };
  };
  /** One at a time; rebuilt when a migration was committed. */
  const chainOf = (migrations: string): Promise<Chain> => {
    const before = chain;
    chain = (async () => {
      const hash = await migrationsHash(migrations);
      const there = await before?.catch(() => undefined);
      if (there?.hash === hash) return there;
      if (there) await root.query(`drop database ${there.name} with (force)`);
      return await makeChain(migrations, hash);
    })();
    return chain;
  };

  const clone = async ({ hash, name: template }: Chain): Promise<{ hash: string; name: string }> => {
    const name = `reference_${randomBytes(4).toString("hex")}`;
    // A closed connection may still exist on the server.
    await unused(root, template);
    await root.query(`create database ${name} template ${template} strategy file_copy`);
    await limitDatabase(root, name);
    return { hash, name };
  };
  /** PERF: built in advance. */
  const keepSpare = (made: Chain): void => {
    spare ??= clone(made);
    spare.catch(() => (spare = undefined));
  };
  const cloneOf = async (made: Chain): Promise<string> => {
    const kept = await spare?.catch(() => undefined);
    spare = undefined;
    if (kept?.hash === made.hash) return kept.name;
    if (kept) await root.query(`drop database ${kept.name} with (force)`);
    return (await clone(made)).name;
  };

  return {
    prepare: async (migrations) => keepSpare(await chainOf(migrations)),
    make: async (options) => {
      const made = await chainOf(options.folder);
      const name = await cloneOf(made);
      let use: Promise<unknown> | undefined;
      try {
        const whole = () => (use = options.meanwhile?.(loginAt(name)));
        const reference = await readObjectsOn(at(name), options, whole);
        return options.current ? { ...reference, chain: made.catalog } : reference;
      } finally {
        // Dropped in the background.
        dropping = Promise.all([dropping, use?.catch(() => undefined)])
          .then(() => root.query(`drop database ${name} with (force)`))
          .then(() => keepSpare(made))
          .catch(() => undefined);
      }
    },
    stop: async () => {
      await dropping;
      await chain?.catch(() => undefined);
      await spare?.catch(() => undefined);
      await root.end();
    },
  };
}

async function unused(root: Client, name: string): Promise<void> {
  for (;;) {
    const { rowCount } = await root.query("select from pg_stat_activity where datname = $1", [name]);
    if (rowCount === 0) return;
    await root.query("select pg_sleep(0.005)");
  }
}
