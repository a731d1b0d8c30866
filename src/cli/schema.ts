/**
 * Writes schema.graphql, the served schema, from the migrations on an embedded database of its own; with --check it only
 * says whether the tracked file is what the server serves.
 */
import { chmod, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { lexicographicSortSchema, printSchema } from "postgraphile/graphql";
import { makeSchema } from "postgraphile";
import { startEmbeddedPostgres } from "../database/embedded.ts";
import { migrate } from "../database/migrate.ts";
import { makePool } from "../database/pool.ts";
import { authenticatorUrl } from "../database/roles.ts";
import { createPreset } from "../preset.ts";

const file = join(import.meta.dirname, "../../schema.graphql");
const folder = await mkdtemp(join(tmpdir(), "plat-schema-"));
await chmod(folder, 0o711);
const logger = { info() {}, warn: console.warn, error: console.error };
const postgres = await startEmbeddedPostgres({ dataDir: folder, fast: true, logger });
try {
  await migrate(postgres.connectionString, { logger });
  const pool = makePool({ connectionString: authenticatorUrl(postgres.connectionString), max: 2 });
  const { schema } = await makeSchema(createPreset({ pool, signLoginToken: () => "" }));
  await pool.end();
  const served = `${printSchema(lexicographicSortSchema(schema))}\n`;
  if (!process.argv.includes("--check")) await writeFile(file, served);
  else if ((await readFile(file, "utf8").catch(() => "")) !== served) {
    console.error("schema.graphql is not what the server serves: run `npm run schema` and read its diff.");
    process.exitCode = 1;
  }
} finally {
  await postgres.stop();
  await rm(folder, { recursive: true, force: true });
}
