/** Lock files of the folders with packages of their own: `npm ci` accepts them, as far as that can be known offline. */
import { execFile, execFileSync } from "node:child_process";
import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join, resolve } from "node:path";
import { promisify } from "node:util";
import { afterAll, beforeAll, expect, test } from "@jest/globals";

const repository = resolve(import.meta.dirname, "../..");
const options = ["--dry-run", "--offline", "--no-audit", "--no-fund", "--ignore-scripts"];

let home: string;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "plat-home-"));
});
afterAll(() => rm(home, { recursive: true }));

test("each fits its package.json, and the packages fit each other", async () => {
  const listed = execFileSync("git", ["ls-files", "*/package-lock.json"], {
    cwd: repository,
    encoding: "utf8",
  });
  const folders = listed.trim().split("\n").map(dirname);
  expect(folders).toContain("test/mutation");
  for (const folder of folders)
    await promisify(execFile)("npm", ["ci", ...options], {
      cwd: join(repository, folder),
      env: { ...process.env, HOME: home },
    });
});
