/** Refuses committed migrations whose headers do not match their texts, or that were edited or removed after they were committed. */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { committedFolder, migrationText, readMigrations } from "../database/committed.ts";
import { checkHistory } from "../database/committedHistory.ts";

const faults: string[] = [];
let previous: string | undefined;
for (const migration of await readMigrations()) {
  const { text, hash } = migrationText(migration, previous);
  previous = hash;
  if ((await readFile(join(committedFolder, migration.file), "utf8")) !== text)
    faults.push(
      `The hashes in the header of migrations/committed/${migration.file} do not match its text: do not edit committed migrations, and commit new ones with \`npm run migrations:commit -- <name>\`.`,
    );
}
const history = await checkHistory(process.cwd());
if ("unknown" in history)
  console.log(`It could not be determined whether committed migrations were edited: ${history.unknown}.`);
else faults.push(...history.faults);
for (const fault of faults) console.error(fault);
if (faults.length > 0) process.exitCode = 1;
