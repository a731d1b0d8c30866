import { Pool, type PoolConfig } from "pg";
import { appliedMigrations } from "./baseline.ts";
import { DatabaseClient, type DatabaseClientConfig } from "./client.ts";
import { migrationsFolder, readMigrations } from "./committed.ts";
import { schemaHash } from "./objects.ts";
import { schemaStates } from "./schemaState.ts";
import { acceptsWrites } from "./writes.ts";

export interface MigratedCheck {
  /** File names of the committed migrations that the database lacks, or `objects` if it has none of our objects. */
  missing(): Promise<string[]>;
  /** Whether the database accepts changes. @throws if it is unreachable */
  acceptsWrites(): Promise<boolean>;
  end(): Promise<void>;
}

/**
 * Compares the database with this version's migrations and replaceable objects. A database with more migrations, or
 * with our objects and later ones, counts as migrated: during a rolling deployment the older processes continue.
 * @param loginUrl of the login that migrates, since nobody else can read the list.
 */
export async function migratedCheck(
  loginUrl: string,
  onError: (error: Error) => void,
  folder = migrationsFolder,
): Promise<MigratedCheck> {
  const migrations = await readMigrations(`${folder}/committed`);
  const hash = await schemaHash(folder);
  const config: PoolConfig & DatabaseClientConfig = {
    Client: DatabaseClient,
    connectionString: loginUrl,
    max: 1,
    // A database that does not answer must not block later callers.
    connectionTimeoutMillis: 2000,
    application_name: "plat readiness",
    connectWithin: 2000,
    answerWithin: 2000,
  };
  const pool = new Pool(config);
  // Without a listener, a restart of the database would crash the process.
  pool.on("error", onError);
  return {
    missing: async () => {
      const applied = await appliedMigrations(pool);
      const hashes = new Set(applied.map((migration) => migration.hash));
      const missing = migrations.filter((migration) => !migration.hash || !hashes.has(migration.hash));
      if (missing.length > 0) return missing.map(({ file }) => file);
      if (applied.length > migrations.length || (await schemaStates(pool)).includes(hash)) return [];
      return ["objects"];
    },
    acceptsWrites: () => acceptsWrites(pool),
    end: () => pool.end(),
  };
}
