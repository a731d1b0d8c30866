import { Pool, type PoolConfig } from "pg";
import { appliedMigrations } from "./baseline.ts";
import { DatabaseClient, type DatabaseClientConfig } from "./client.ts";
import { migrationsFolder, readMigrations } from "./committed.ts";
import { schemaHash } from "./objects.ts";
import { schemaStates } from "./schemaState.ts";
import { takesChanges } from "./writes.ts";

export interface MigratedCheck {
  /** What the database lacks: committed migrations by file name, or `objects` when it never had ours. */
  missing(): Promise<string[]>;
  /** Whether the database takes changes. @throws where it cannot be reached */
  takesChanges(): Promise<boolean>;
  end(): Promise<void>;
}

/**
 * Compares the database with this version's migrations and replaceable objects. One that holds more migrations, or had
 * our objects and has later ones, counts as migrated: during a rolling deployment the older processes go on working.
 * @param loginUrl of the login that migrates, since nobody else sees the list.
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
    // Whoever waits for the answer before is not left waiting by a database that gives none.
    connectionTimeoutMillis: 2000,
    application_name: "plat readiness",
    connectWithin: 2000,
    answerWithin: 2000,
  };
  const pool = new Pool(config);
  // Without a listener a database that restarts would end the process.
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
    takesChanges: () => takesChanges(pool),
    end: () => pool.end(),
  };
}
