/** Conditions under which `npm run check` fails. */
import { tmpdir } from "node:os";
import { expect, test } from "@jest/globals";
import { runPart, type CheckPart } from "../../src/checks/parts.ts";

async function run(code: string, more: Partial<CheckPart> = {}) {
  const shown: string[] = [];
  const isGreen = await runPart(
    { name: "part", command: process.execPath, args: ["-e", code], ...more },
    { cwd: tmpdir(), show: (text) => shown.push(text) },
  );
  return { isGreen, shown: shown.join("") };
}

test("a part succeeds by its exit status alone, and its output is shown", async () => {
  expect(await run("")).toEqual({ isGreen: true, shown: "" });
  expect(await run("console.log('by the way')")).toEqual({ isGreen: true, shown: "by the way\n" });
  expect(await run("console.log('as always')", { chatty: true })).toEqual({ isGreen: true, shown: "" });
});

test("a part that fails, dies or cannot be started is red, with all of its output", async () => {
  expect(
    await run("console.log('a.ts'); console.error('stale'); process.exitCode = 3", { chatty: true }),
  ).toEqual({
    isGreen: false,
    shown: expect.stringMatching(/^part: red \(3\)\n(a\.ts\nstale|stale\na\.ts)\n$/),
  });
  expect(await run("process.kill(process.pid, 'SIGKILL')")).toEqual({
    isGreen: false,
    shown: "part: red (137)\n",
  });
  expect(await run("", { command: "/nowhere/tsc" })).toEqual({
    isGreen: false,
    shown: expect.stringMatching(/^part: red \(1\)\nspawn \/nowhere\/tsc ENOENT\n/),
  });
});
