/**
 * `npm run rehearse`: the version before the last migration serves a load while this one migrates, without long lock
 * waits.
 */
import { expect, test } from "@jest/globals";
// oxlint-disable-next-line no-restricted-imports -- git, and the command as it is run by hand
import { execFile } from "node:child_process";
import { resolve } from "node:path";
import { promisify } from "node:util";

const run = promisify(execFile);
const repository = resolve(import.meta.dirname, "../..");

test("the previous version keeps running while this one migrates", async () => {
  const last = ["log", "-1", "--format=%H", "--diff-filter=A", "--", "migrations/committed"];
  const { stdout: commit } = await run("git", last, { cwd: repository });
  const { stdout } = await run(process.execPath, ["test/rehearsal/run.ts", `${commit.trim()}^`], {
    cwd: repository,
    env: { ...process.env, REHEARSAL_SECONDS: "3", REHEARSAL_LEADS: "5000", NODE_OPTIONS: "" },
  });
  expect(stdout).toMatch(/^Requests: \d{2,}, \d+ of them during the migration; 0 answered wrongly\.$/m);
  expect(stdout).toMatch(/over 100 ms: 0\.$/m);
}, 300_000);
