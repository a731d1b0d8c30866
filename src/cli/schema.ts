/**
 * Writes schema.graphql, the served schema, from the migrations on a database of its own; with --check it only says
 * whether the tracked file is what the server serves. Both refuse a catalogue of applications that says what cannot be.
 */
import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { lexicographicSortSchema, printSchema } from "postgraphile/graphql";
import { makeSchema } from "postgraphile";
import { makePool } from "../database/pool.ts";
import { authenticatorUrl } from "../database/roles.ts";
import { checkCatalogue } from "../integrations/schema.ts";
import { createPreset } from "../preset.ts";
import { withScratchDatabase } from "./scratchDatabase.ts";

const unused = () => {
  throw new Error("Nothing is served here.");
};
const file = join(import.meta.dirname, "../../schema.graphql");
await withScratchDatabase(async (ownerUrl) => {
  const pool = makePool({ connectionString: authenticatorUrl(ownerUrl), max: 2 });
  const { schema } = await makeSchema(
    createPreset({
      pool,
      signLoginToken: unused,
      signFileAddress: unused,
      files: { take: unused, read: unused },
      webhookTransforms: { publicAddress: unused, freshSecret: unused },
      workflowChecks: unused,
      paymentTransforms: { cardToken: unused, payment: unused, refund: unused, representative: unused },
      draftTransforms: { composeLeadEmail: unused },
      integrationTransforms: { hideCredentials: unused, connectIntegration: unused },
    }),
  );
  await pool.end();
  const owner = makePool({ connectionString: ownerUrl, max: 1 });
  const apps = await owner.query(
    "select key, config_schema, credentials_schema from app_public.integration_apps",
  );
  checkCatalogue(apps.rows);
  await owner.end();
  const served = `${printSchema(lexicographicSortSchema(schema))}\n`;
  if (!process.argv.includes("--check")) await writeFile(file, served);
  else if ((await readFile(file, "utf8").catch(() => "")) !== served) {
    console.error("schema.graphql is not what the server serves: run `npm run schema` and read its diff.");
    process.exitCode = 1;
  }
});
