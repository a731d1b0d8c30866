/**
 * Writes schema.graphql, the served schema, and schema.sql, the database as it is, from the migrations; with --check it
 * only says whether the tracked files are up to date. Both refuse a catalogue of applications that says what cannot be.
 *
 *     npm run schema [-- --check] [<owner's connection to a migrated database>]
 *
 * Without a connection it makes a database of its own.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lexicographicSortSchema, printSchema } from "postgraphile/graphql";
import { makePool } from "../database/pool.ts";
import { authenticatorUrl } from "../database/roles.ts";
import { checkCatalogue } from "../integrations/jsonSchema.ts";
import { buildSchema } from "../service/schemaAlone.ts";
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

/** Writes a file at the top of the project; with --check says whether it is what it should be. */
async function writeOrCheck(name: string, wanted: string, source: string): Promise<void> {
  const file = join(import.meta.dirname, "../..", name);
  if (!process.argv.includes("--check")) await writeFile(file, wanted);
  else if ((await readFile(file, "utf8").catch(() => "")) !== wanted) {
    console.error(`${name} is not ${source}: run \`npm run schema\` and read its diff.`);
    process.exitCode = 1;
  }
}
