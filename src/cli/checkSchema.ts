/**
 * Checks migrations and objects for omissions before they run anywhere: the rules of src/checks, for the catalog of a migrated database and
 * for the files of migrations/. Prints a sentence for each finding.
 *
 * npm run check:schema [-- <owner's connection to a migrated database>]
 *
 * Without a connection, it creates a temporary database.
 */
import { Client } from "pg";
import { checkChain } from "../checks/checkChain.ts";
import { checkCatalog, prepareChecks } from "../checks/checkCatalog.ts";
import { checkFiles, readSqlFiles } from "../checks/checkFiles.ts";
import { checkMessages } from "../checks/checkMessages.ts";
import type { Finding } from "../checks/rule.ts";
import { sourceWords } from "../checks/sources.ts";
import { withScratchDatabase } from "./scratchDatabase.ts";

/** Maximum findings that are shown per rule. */
const shown = 20;

async function checkDatabase(ownerUrl: string): Promise<Finding[]> {
  const client = new Client({ connectionString: ownerUrl });
  await client.connect();
  try {
    await prepareChecks(client);
    return [...(await checkCatalog(client, await sourceWords())), ...(await checkMessages(client))];
  } finally {
    await client.end();
  }
}

const files = await readSqlFiles();
const findings = [...checkFiles(files), ...(await checkChain(files))];
const [given] = process.argv.slice(2);
await withScratchDatabase(async (ownerUrl) => void findings.push(...(await checkDatabase(ownerUrl))), given);

for (const [rule, found] of Map.groupBy(findings, (finding) => finding.rule)) {
  console.error(`${rule}:`);
  for (const { object, write } of found.slice(0, shown)) console.error(`  ${object}: ${write}`);
  if (found.length > shown) console.error(`  … and ${found.length - shown} more.`);
}
if (findings.length > 0) process.exitCode = 1;
