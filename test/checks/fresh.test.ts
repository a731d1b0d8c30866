/** `.ci/fresh` exits with the status of its command, by which CI distinguishes success from failure. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { expect, test } from "@jest/globals";

const project = join(import.meta.dirname, "../..");

function fresh(command: string) {
  return spawnSync(join(project, ".ci/fresh"), ["bash", "-c", command], {
    cwd: project,
    encoding: "utf8",
    timeout: 20_000,
  });
}

test("the status of the command is the status of the run", () => {
  expect(fresh("exit 0").status).toBe(0);
  expect(fresh("exit 7").status).toBe(7);
});

test("what the command leaves running ends with it, and does not change its status", () => {
  // It holds the output open: if it lived on, reading would go on until the time is over.
  const { status, stdout } = fresh("sleep 1000 & echo started");
  expect({ status, stdout }).toEqual({ status: 0, stdout: "started\n" });
});

test("home and temporary folder are empty", () => {
  const { stdout } = fresh('ls -A "$HOME" "$TMPDIR" | grep -v :; echo end');
  expect(stdout.trim()).toBe("end");
});
