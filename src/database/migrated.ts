import { Pool } from "pg";
import { readChapters } from "./committed.ts";

export interface MigratedCheck {
  /** The committed chapters that the database lacks, by file name. */
  missing(): Promise<string[]>;
  end(): Promise<void>;
}

/**
 * Compares the database with this version's chapters. One that holds more than them counts as migrated: during
 * a rolling deployment the older processes go on working.
 * @param ownerUrl the owner's connection, since nobody else sees the list.
 */
export async function migratedCheck(
  ownerUrl: string,
  onError: (error: Error) => void,
): Promise<MigratedCheck> {
  const chapters = await readChapters();
  const pool = new Pool({
    connectionString: ownerUrl,
    max: 1,
    application_name: "plat readiness",
    connectionTimeoutMillis: 2000,
    query_timeout: 2000,
  });
  // Without a listener a database that restarts would end the process.
  pool.on("error", onError);
  return {
    missing: async () => {
      const { rows: there } = await pool.query<{ yes: boolean }>(
        "select to_regclass('graphile_migrate.migrations') is not null as yes",
      );
      if (!there[0]?.yes) return chapters.map(({ file }) => file);
      const { rows } = await pool.query<{ hash: string }>("select hash from graphile_migrate.migrations");
      const applied = new Set(rows.map(({ hash }) => hash));
      return chapters.filter(({ hash }) => !hash || !applied.has(hash)).map(({ file }) => file);
    },
    end: () => pool.end(),
  };
}
