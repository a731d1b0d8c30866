import type { Client } from "pg";
import { readCatalog, type CatalogObject } from "./catalog.ts";
import { runCurrent } from "./current.ts";
import { migrateOn } from "./onConnection.ts";
import { applyObjects, readObjects } from "./objects.ts";
import { validateFunctions } from "./validateFunctions.ts";

/** Schema built from the files of a folder. */
export interface Reference {
  catalog: CatalogObject[];
  /** Tables whose rows the files declare; included in the catalog. */
  declaredTables: string[];
  /** Result of the committed migrations alone; only if current.sql follows them. */
  chain?: CatalogObject[];
}

export interface ReferenceOptions {
  /** The folder with `committed` and `objects`. */
  folder: string;
  /** Text of current.sql, run between the two. */
  current?: string;
  /** Whether function bodies are checked. */
  validate?: boolean;
  /**
   * Further work on the database as soon as it contains what the API shows; the database exists until that has ended.
   */
  meanwhile?: (connectionString: string) => Promise<unknown>;
}

/**
 * Applies current.sql and objects to a database that only has the migrations, and reads it. Objects get a session of
 * their own: rows written by a migration are not declared ones.
 * @param made called when the database contains everything that the API shows, before triggers are created and the
 * catalog is read.
 * @throws SchemaError
 */
export async function readObjectsOn(
  connectionString: string,
  options: ReferenceOptions,
  made: () => void = () => {},
): Promise<Reference> {
  const { current, folder } = options;
  if (current)
    await migrateOn(connectionString, async (client) => {
      await client.query("begin");
      await runCurrent(client, folder, current);
      await client.query("commit");
    });
  return await migrateOn(connectionString, async (client) => {
    await client.query("begin");
    const { declaredTables } = await applyObjects(client, { folder, shown: made });
    await client.query("commit");
    // PERF: concurrently; most bodies were checked when they were saved.
    const [checked, catalog] = await Promise.allSettled([
      options.validate && migrateOn(connectionString, (other) => validate(other, folder)),
      readCatalog(client, { rowsOf: declaredTables }),
    ]);
    for (const part of [checked, catalog]) if (part.status === "rejected") throw part.reason;
    return { catalog: (catalog as PromiseFulfilledResult<CatalogObject[]>).value, declaredTables };
  });
}

async function validate(client: Client, folder: string): Promise<void> {
  await client.query("begin");
  await validateFunctions(client, await readObjects(folder));
  await client.query("rollback");
}
