/**
 * Stryker's runner of Jest, which for a mutant runs all test files that import the mutated one, whatever tests of them it is about, to their
 * end. This one runs the files of the tests that execute the mutant, those first that take the least time, until one of them fails.
 */
import { readFileSync, writeFileSync } from "node:fs";
import { declareFactoryPlugin, PluginKind } from "@stryker-mutator/api/plugin";
import { strykerPlugins as plugins } from "@stryker-mutator/jest-runner";
import { isSampled } from "./sample.ts";

export { strykerValidationSchema } from "@stryker-mutator/jest-runner";

const [{ factory }] = plugins;
/** The tests of each file and how long it takes, for the processes that run mutants; in the sandbox, where all of them work. */
const index = "tests.json";
/** Milliseconds that a test may take; what a mutant lets wait for ever is given up sooner. */
const withinMs = 120_000;
const mutantWithinMs = 20_000;
/** One in this number of mutants is run; see run.ts. */
const sampleOf = Number(process.env.PLAT_MUTATION_SAMPLE ?? 1);

function createRunner(injector) {
  const runner = factory(injector);
  const adapter = runner.jestTestAdapter;
  const run = adapter.run.bind(adapter);
  const { dryRun, mutantRun } = runner;
  /** @type {string[] | undefined} */
  let testFiles;
  let testTimeout = withinMs;
  adapter.run = async (settings) => {
    const jestConfig = { ...settings.jestConfig, testTimeout };
    if (!testFiles?.length) return run({ ...settings, jestConfig });
    const results = [];
    for (const file of testFiles) {
      const { results: result } = await run({ ...settings, jestConfig, testFiles: [file] });
      results.push(...result.testResults);
      if (!result.success) break;
    }
    return {
      results: {
        testResults: results,
        numRuntimeErrorTestSuites: results.filter(({ testExecError }) => testExecError).length,
      },
    };
  };

  runner.dryRun = async (options) => {
    const result = await dryRun.call(runner, options);
    const files = {};
    for (const { id, fileName, timeSpentMs } of result.tests ?? []) {
      const file = (files[fileName] ??= { tests: [], ms: 0 });
      file.tests.push(id);
      file.ms += timeSpentMs;
    }
    writeFileSync(index, JSON.stringify(files));
    return result;
  };
  runner.mutantRun = async (options) => {
    // What has this status does not count.
    if (!isSampled(options.activeMutant.id, sampleOf))
      return { status: "error", errorMessage: "not in the sample" };
    const wanted = new Set(options.testFilter);
    testTimeout = mutantWithinMs;
    testFiles =
      options.testFilter &&
      Object.entries(JSON.parse(readFileSync(index, "utf8")))
        .filter(([, { tests }]) => tests.some((test) => wanted.has(test)))
        .toSorted(([, a], [, b]) => a.ms - b.ms)
        .map(([file]) => file);
    return mutantRun.call(runner, options);
  };
  return runner;
}
createRunner.inject = factory.inject;

export const strykerPlugins = [declareFactoryPlugin(PluginKind.TestRunner, "jest-files", createRunner)];
