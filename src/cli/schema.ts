/**
 * Writes schema.graphql, the served schema, and schema.sql, the database schema, from the migrations; with --check, it only reports whether
 * the files are up to date. Both refuse an invalid catalogue of applications.
 *
 * npm run schema [-- --check] [<owner's connection to a migrated database>]
 *
 * Without a connection, it creates a temporary database.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lexicographicSortSchema, printSchema } from "postgraphile/graphql";
import { makePool } from "../database/pool.ts";
import { authenticatorUrl } from "../database/roles.ts";
import { checkCatalogue } from "../integrations/jsonSchema.ts";
import { buildSchema } from "../service/schemaOnly.ts";
import { schemaSql } from "./schemaSql.ts";
import { withScratchDatabase } from "./scratchDatabase.ts";

const given = process.argv.slice(2).find((argument) => argument !== "--check");
await withScratchDatabase(async (ownerUrl) => {
  const schema = await buildSchema(authenticatorUrl(ownerUrl));
  const owner = makePool({ connectionString: ownerUrl, max: 1 });
  const apps = await owner.query(
    "select key, config_schema, credentials_schema from app_public.integration_apps",
  );
  checkCatalogue(apps.rows);
  await owner.end();
  await writeOrCheck(
    "schema.graphql",
    `${printSchema(lexicographicSortSchema(schema))}\n`,
    "what the server serves",
  );
  await writeOrCheck("schema.sql", await schemaSql(ownerUrl), "what the migrations make");
}, given);

/** Writes a file in the root of the project; with --check, compares it. */
async function writeOrCheck(name: string, wanted: string, source: string): Promise<void> {
  const file = join(import.meta.dirname, "../..", name);
  if (!process.argv.includes("--check")) await writeFile(file, wanted);
  else if ((await readFile(file, "utf8").catch(() => "")) !== wanted) {
    console.error(`${name} is not ${source}: run \`npm run schema\` and review its diff.`);
    process.exitCode = 1;
  }
}
