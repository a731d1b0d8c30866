import type { Client } from "pg";
import { readCatalog, type CatalogObject } from "./catalog.ts";
import { runCurrent } from "./current.ts";
import { migrateOn } from "./onConnection.ts";
import { applyObjects, readObjects } from "./objects.ts";
import { validateFunctions } from "./validateFunctions.ts";

/** What the files of a folder make. */
export interface Reference {
  catalog: CatalogObject[];
  /** The tables whose rows the files declare; the catalog has them. */
  declaredTables: string[];
  /** What the committed migrations alone make; only where a current one follows them. */
  chain?: CatalogObject[];
}

export interface ReferenceOptions {
  /** The folder with `committed` and `objects`. */
  folder: string;
  /** What runs between the two: the text of the migration that is being written. */
  current?: string;
  /** Whether the bodies of functions are checked. */
  validate?: boolean;
  /** What else is done with the database as soon as it holds what the API shows; it is there until that has ended. */
  meanwhile?: (connectionString: string) => Promise<unknown>;
}

/**
 * Applies what follows the migrations, to a database that has just these, and reads it. Objects get a session of their own:
 * rows that a migration wrote are none of those that objects declare.
 * @param made told when the database holds everything that the API shows, before its triggers are made and it is read.
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
    // PERF: side by side; most bodies were checked when they were saved.
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
