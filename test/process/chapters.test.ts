import { expect, test } from "@jest/globals";
import { spawnSync } from "node:child_process";
import { cp, mkdir, readFile, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { chapterText, readChapters } from "../../src/database/committed.ts";
import { temporaryFolder } from "../harness/service.ts";

const repository = resolve(import.meta.dirname, "../..");

/** Runs the command in a copy of its own, so that it cannot touch the tracked chapters. */
function rehash(folder: string, ...args: string[]) {
  const { status, stdout } = spawnSync(process.execPath, ["src/cli/rehash.ts", ...args], {
    cwd: folder,
    encoding: "utf8",
  });
  return { status, stdout };
}

test("the tracked chapters carry the headers that their texts require", async () => {
  const chapters = await readChapters();
  expect(chapters.length).toBeGreaterThan(0);
  let previous: string | undefined;
  for (const chapter of chapters) {
    const { text, hash } = chapterText(chapter, previous);
    expect(await readFile(join(repository, "migrations/committed", chapter.file), "utf8")).toBe(text);
    previous = hash;
  }
});

test("rehash gives chapters their headers, keeps other headers, and --check only reports", async () => {
  await using folder = await temporaryFolder();
  await mkdir(join(folder.path, "src/cli"), { recursive: true });
  for (const file of ["src/cli/rehash.ts", "src/database/committed.ts", "package.json"])
    await cp(join(repository, file), join(folder.path, file));
  const committed = join(folder.path, "migrations/committed");
  await mkdir(committed, { recursive: true });
  await writeFile(join(committed, "000001-first.sql"), "create schema a;\n");
  await writeFile(join(committed, "000002-second.sql"), "--! Message: more\n\ncreate schema b;");
  await writeFile(join(committed, "notes.txt"), "no chapter");

  expect(rehash(folder.path, "--check")).toEqual({
    status: 1,
    stdout: "wrong headers: 000001-first.sql\nwrong headers: 000002-second.sql\n",
  });
  expect(rehash(folder.path)).toEqual({
    status: 0,
    stdout: "rewritten: 000001-first.sql\nrewritten: 000002-second.sql\n",
  });
  expect(rehash(folder.path, "--check")).toEqual({ status: 0, stdout: "" });
  const [first, second] = await readChapters(committed);
  expect(first).toMatchObject({ previous: "-", otherHeaders: [] });
  expect(second).toMatchObject({
    previous: first!.hash,
    otherHeaders: ["--! Message: more"],
    body: "create schema b;\n",
  });
  // A change in the first one reaches the second one's sum.
  await writeFile(join(committed, "000001-first.sql"), "create schema c;\n");
  expect(rehash(folder.path).stdout).toBe("rewritten: 000001-first.sql\nrewritten: 000002-second.sql\n");
});
