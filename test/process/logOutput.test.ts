/** The log of a process whose standard output is read slowly, or not at all. */
import { expect, test } from "@jest/globals";
import { once } from "node:events";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { startChild } from "../harness/child.ts";

const log = join(import.meta.dirname, "../../src/base/log.ts");
const lines = 60_000;

/** Starts a program that logs, with a function `log`; `process.stdout` makes the pipe one that does not block. */
const startLogging = (program: string) =>
  startChild(
    [
      "--input-type=module",
      "--eval",
      `import { createLog } from ${JSON.stringify(log)};
       process.stdout.on("error", () => {});
       const log = createLog("info");
       const filler = "é".repeat(200);
       ${program}`,
    ],
    { stdio: ["ignore", "pipe", "inherit", "ipc"] },
  );

interface Line {
  event: string;
  n?: number;
  source?: number;
  lines?: number;
}
const parse = (output: string): Line[] =>
  output
    .trimEnd()
    .split("\n")
    .map((line) => JSON.parse(line) as Line);

test("lines that nobody reads do not block the process; those for which there is no room are counted", async () => {
  const child = startLogging(
    `for (let n = 0; n < ${lines}; n++) {
       log[n % 100 === 0 ? "warn" : "info"]({ event: "job.log", n, filler }, "x");
       if (n % 100 === 0) await new Promise((next) => setImmediate(next));
     }
     process.send("logged");
     // A line after the reader has caught up.
     process.once("message", () => { log.info({ event: "job.log", n: ${lines} }, "x"); process.disconnect(); });`,
  );
  child.stdout!.pause();
  await once(child, "message");
  const output = text(child.stdout!);
  child.send("read");
  const read = parse(await output);
  const numbers = read.flatMap(({ n }) => (n === undefined ? [] : [n]));
  expect(numbers).toEqual(numbers.toSorted((a, b) => a - b));
  const dropped = read.filter(({ event }) => event === "log.dropped");
  expect(dropped.length).toBeGreaterThan(0);
  const lost = dropped.reduce((sum, one) => sum + one.lines!, 0);
  expect(lost).toBeGreaterThan(10_000);
  expect(numbers.length + lost).toBe(lines + 1);
});

test("the end of the process waits for a reader that is slow, and not for one that reads nothing", async () => {
  const program = `for (let n = 0; n < 2_000; n++) log.info({ event: "job.log", n, filler }, "x");
    process.send("logged", () => process.exit(3));`;
  const slow = startLogging(program);
  slow.stdout!.pause();
  await once(slow, "message");
  const output = text(slow.stdout!);
  expect(parse(await output).map(({ n }) => n)).toEqual(Array.from({ length: 2_000 }, (_, n) => n));

  const unread = startLogging(program);
  unread.stdout!.pause();
  expect(await once(unread, "exit")).toEqual([3, null]);
  unread.stdout!.destroy();
});

test("processes that share the output do not mix their lines", async () => {
  const child = startLogging(
    `import { spawn } from "node:child_process";
     if (process.env.SECOND === undefined)
       spawn(process.execPath, process.execArgv, {
         env: { ...process.env, SECOND: "1" },
         stdio: ["ignore", "inherit", "inherit"],
       });
     const source = Number(process.env.SECOND ?? 0);
     for (let n = 0; n < 5_000; n++) {
       log.info({ event: "job.log", n, source, filler }, "x");
       if (n % 10 === 0) await new Promise((next) => setImmediate(next));
     }
     process.channel?.unref();`,
  );
  const read = parse(await text(child.stdout!));
  expect(read.length).toBe(10_000);
  expect(new Set(read.map(({ n, source }) => `${n} ${source}`)).size).toBe(10_000);
});
