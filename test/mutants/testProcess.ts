/**
 * A process that runs test files one after the other, each on databases with one mutant. The cluster with the
 * migrated template, the modules of the API and its GraphQL schema are reused, so that a file takes little more than
 * its own tests.
 */
import { open, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { runCLI } from "@jest/core";
import type { Config } from "@jest/types";
import globalSetup from "../harness/globalSetup.ts";
import globalTeardown from "../harness/globalTeardown.ts";
import { startCounting } from "../mutation/reach.ts";
import type { Answer, Run } from "./testProcesses.ts";
import { noteRefusals } from "./usage.ts";

const repository = resolve(import.meta.dirname, "../..");
/** The error of a test that waited in vain. */
const waited =
  /Exceeded timeout|Waited|tim(e|ed)[ -]?out|Connection terminated|statement timeout|ECONNRESET/i;
const jest = {
  rootDir: repository,
  roots: ["<rootDir>/test"],
  extensionsToTreatAsEsm: [".ts"],
  transform: {
    "\\.ts$": `<rootDir>/test/${process.env.PLAT_SOURCE_MUTANT ? "mutation/transform.ts" : "harness/strip-types.cjs"}`,
  },
  testEnvironment: "<rootDir>/test/mutants/environment.ts",
  testTimeout: 60_000,
  maxWorkers: 1,
};

const counted = process.env.PLAT_TEST_REACH ? await startCounting() : undefined;
await globalSetup({ nonFlagArgs: [] });
// What builds the schema, once a process, would otherwise be counted for its first file alone.
if (counted) await (await import("../harness/host.ts")).buildAhead(process.env.PLAT_TEST_MIGRATED!);
const atStart = await counted?.();
process.on("message", (asked: Run) => {
  run(asked).then(
    (answer) => process.send!(answer),
    (error: Error) => process.send!({ failed: null, error: error.message }),
  );
});
process.once("disconnect", () => {
  void globalTeardown().then(() => process.exit());
});
process.send!({ ready: true });

async function run({ file, sql = "", usage = "", reach }: Run): Promise<Answer> {
  Object.assign(process.env, { PLAT_TEST_MUTANT: sql, PLAT_TEST_USAGE: usage });
  const argv = {
    _: [file],
    $0: "jest",
    config: JSON.stringify(jest),
    runInBand: true,
    runTestsByPath: true,
    silent: true,
    reporters: [],
    watchman: false,
  } as unknown as Config.Argv;
  const log = usage ? await open(join(platTestCluster!.folder, "postgres.log")) : undefined;
  const from = (await log?.stat())?.size;
  const { results } = await runCLI(argv, [repository]);
  if (reach) await writeFile(reach, JSON.stringify({ atStart, executed: await counted!() }));
  if (log)
    await noteRefusals(
      file,
      await log
        .createReadStream({ start: from!, encoding: "utf8" })
        .toArray()
        .then((parts) => parts.join("")),
      usage,
    );
  const [result] = results.testResults;
  if (!result) throw new Error(`${file} was not run.`);
  const failed = result.testResults.find(({ status }) => status === "failed");
  if (failed)
    return { failed: failed.fullName, late: failed.failureMessages.some((message) => waited.test(message)) };
  return { failed: result.testExecError || results.numFailedTestSuites > 0 ? "the file as a whole" : null };
}
