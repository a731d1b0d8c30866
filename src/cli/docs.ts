/**
 * Writes the generated parts of the guides in docs/ from the code and the migrations; with --check, it only reports those that are not up
 * to date.
 *
 * npm run docs [-- --check] [<owner's connection to a migrated database>]
 *
 * Without a connection, it creates a temporary database.
 */
import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { Client } from "pg";
import { guides, repository } from "../docs/generated.ts";
import { withScratchDatabase } from "./scratchDatabase.ts";

const given = process.argv.slice(2).find((argument) => argument !== "--check");
await withScratchDatabase(async (ownerUrl) => {
  const database = new Client({ connectionString: ownerUrl });
  await database.connect();
  try {
    for (const [file, { is, shall }] of await guides(database)) {
      if (is === shall) continue;
      if (!process.argv.includes("--check")) await writeFile(join(repository, file), shall);
      else {
        console.error(`${file} is out of date with the code and the migrations: run \`npm run docs\`.`);
        process.exitCode = 1;
      }
    }
  } finally {
    await database.end();
  }
}, given);
