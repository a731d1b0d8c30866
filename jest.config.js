/** Tests run as native ES modules; Node's own type stripping is the only transform (see test/harness/strip-types.cjs). */
export default {
  testEnvironment: "<rootDir>/test/harness/environment.ts",
  testMatch: ["<rootDir>/test/**/*.test.ts"],
  extensionsToTreatAsEsm: [".ts"],
  transform: { "\\.ts$": "<rootDir>/test/harness/strip-types.cjs" },
  globalSetup: "<rootDir>/test/harness/globalSetup.ts",
  globalTeardown: "<rootDir>/test/harness/globalTeardown.ts",
  maxWorkers: 2,
  testTimeout: 60_000,
};
