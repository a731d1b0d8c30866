import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { settingsTable } from "../docs/settingsTable.ts";

/** Writes the table of settings into docs/settings.md, between its two markers; with --check, it only compares. */
const document = join(import.meta.dirname, "../../docs/settings.md");
const marks = /(<!-- settings -->\n)[^]*?(<!-- \/settings -->)/;
const text = await readFile(document, "utf8");
if (!marks.test(text))
  throw new Error("docs/settings.md lacks the markers <!-- settings --> and <!-- /settings -->.");
const wanted = text.replace(
  marks,
  (_all, open: string, close: string) => `${open}\n${settingsTable()}\n\n${close}`,
);
if (!process.argv.includes("--check")) await writeFile(document, wanted);
else if (wanted !== text) {
  console.error("docs/settings.md is out of date with src/base/settings.ts: run `npm run settings`.");
  process.exitCode = 1;
}
