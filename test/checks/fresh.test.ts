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

test("processes that the command leaves running end with it, and do not change its status", () => {
  // The process holds the output open: if it were not killed, reading would continue until the time limit.
  const { status, stdout } = fresh("sleep 1000 & echo started");
  expect({ status, stdout }).toEqual({ status: 0, stdout: "started\n" });
});

test("the home and temporary folders are empty", () => {
  const { stdout } = fresh('ls -A "$HOME" "$TMPDIR" | grep -v :; echo end');
  expect(stdout.trim()).toBe("end");
});
