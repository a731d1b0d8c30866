import { Client } from "pg";
import { readCatalog } from "../database/catalog.ts";
import { filledTables } from "../database/catalogRows.ts";
import { renderSchema } from "../docs/schemaSql/renderSchema.ts";

/** Rows that record the migration itself. */
const notDeclared = "app_private.schema_objects";

/** The text of schema.sql for a newly migrated database, whose rows all come from migrations. */
export async function schemaSql(connectionString: string): Promise<string> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    const rowsOf = (await filledTables(client)).filter((table) => table !== notDeclared);
    return renderSchema(await readCatalog(client, { rowsOf }));
  } finally {
    await client.end();
  }
}
