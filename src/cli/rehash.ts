import { readFile, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { chapterText, committedFolder, readChapters } from "../database/committed.ts";

/** Recomputes the Previous and Hash headers of all committed migrations; with --check it only says which are wrong. */
const check = process.argv.includes("--check");
let previous: string | undefined;
let wrong = 0;
for (const chapter of await readChapters()) {
  const path = join(committedFolder, chapter.file);
  const { text, hash } = chapterText(chapter, previous);
  previous = hash;
  if ((await readFile(path, "utf8")) === text) continue;
  wrong++;
  if (!check) await writeFile(path, text);
  console.log(`${check ? "wrong headers" : "rewritten"}: ${chapter.file}`);
}
if (check && wrong > 0) {
  console.error(
    "Run `npm run migrations:hash` for chapters that no database holds yet; others must not change.",
  );
  process.exitCode = 1;
}
