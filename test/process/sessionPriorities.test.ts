/** Priorities of the sessions that the processes of a database start. */
import { once } from "node:events";
import { existsSync, readFileSync } from "node:fs";
import { expect, test } from "@jest/globals";
import { keepSessionsLow } from "../../src/base/sessionPriorities.ts";
import { startProgram } from "../harness/child.ts";
import { until } from "../harness/until.ts";

const isGrouped = existsSync("/proc/self/autogroup");
// A process that has not begun its own session yet may be in no group: the file is empty then.
const niceOf = (pid: string) =>
  Number(/nice (-?\d+)/.exec(readFileSync(`/proc/${pid}/autogroup`, "utf8"))?.[1]);
const childrenOf = (pid: number) =>
  readFileSync(`/proc/${pid}/task/${pid}/children`, "utf8").split(" ").filter(Boolean);

test("sessions of children have a low priority, also of those that start later", async () => {
  const parent = startProgram("sh", ["-c", "setsid sleep 600 & read line; setsid sleep 600 & read line"], {
    stdio: ["pipe", "ignore", "inherit"],
  });
  const pid = parent.pid!;
  let children: string[] = [];
  await until(() => (children = childrenOf(pid)).length === 1);
  const end = keepSessionsLow(pid, 10);
  try {
    parent.stdin!.write("\n");
    await until(() => (children = childrenOf(pid)).length === 2);
    // Elsewhere, nothing may fail.
    if (isGrouped) await until(() => children.every((child) => niceOf(child) === 10));
  } finally {
    end();
    for (const child of children) process.kill(Number(child));
    parent.stdin!.end();
    await once(parent, "exit");
  }
  expect(children).toHaveLength(2);
});

test("a process that has ended is ignored", async () => {
  const child = startProgram("true", [], {});
  await once(child, "exit");
  expect(keepSessionsLow(child.pid!, 10)).not.toThrow();
});
