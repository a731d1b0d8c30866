/** Tests run as native ES modules; Node's own type stripping is the only transform (see test/harness/strip-types.cjs). */
import { availableParallelism, totalmem } from "node:os";
import { testFiles } from "./test/harness/testFiles.js";

const { database, unit } = testFiles({ long: process.env.TEST_LONG === "1" });
const common = {
  // Jest looks through all files of these before it begins.
  roots: ["<rootDir>/test", "<rootDir>/src", "<rootDir>/bench"],
  extensionsToTreatAsEsm: [".ts"],
  transform: { "\\.ts$": "<rootDir>/test/harness/strip-types.cjs" },
};

export default {
  // A worker that has built the schema takes up to 1.5 GB.
  maxWorkers: Math.max(1, Math.min(availableParallelism(), Math.floor(totalmem() / 2 ** 31))),
  // Two busy cores take three times as long as four quiet ones.
  testTimeout: 180_000,
  testSequencer: "<rootDir>/test/harness/sequencer.js",
  projects: [
    { ...common, displayName: "unit", testMatch: unit, testEnvironment: "<rootDir>/test/harness/realm.ts" },
    {
      ...common,
      displayName: "database",
      testMatch: database,
      testEnvironment: "<rootDir>/test/harness/environment.ts",
      globalSetup: "<rootDir>/test/harness/globalSetup.ts",
      globalTeardown: "<rootDir>/test/harness/globalTeardown.ts",
    },
  ],
};
