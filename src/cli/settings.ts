import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { settingsTable } from "../docs/settings.ts";

/** Writes the table of settings into the README, between its two marks; with --check it only compares. */
const readme = join(import.meta.dirname, "../../README.md");
const marks = /(<!-- settings -->\n)[^]*?(<!-- \/settings -->)/;
const text = await readFile(readme, "utf8");
if (!marks.test(text)) throw new Error("README.md lacks the marks <!-- settings --> and <!-- /settings -->.");
const wanted = text.replace(
  marks,
  (_all, open: string, close: string) => `${open}\n${settingsTable()}\n\n${close}`,
);
if (!process.argv.includes("--check")) await writeFile(readme, wanted);
else if (wanted !== text) {
  console.error("The settings in README.md are not those of src/settings.ts: run `npm run settings`.");
  process.exitCode = 1;
}
