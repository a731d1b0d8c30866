/** `npm run test:mutation`: whether the tests notice a change in the code at the service's edge; see docs/tests.md. */
export default {
  mutate: [
    "src/auth/**/*.ts",
    "src/limits/**/*.ts",
    "src/admission/**/*.ts",
    "src/http/**/*.ts",
    "!**/*.d.ts",
  ],
  plugins: ["./test/mutation/runner.js"],
  testRunner: "jest-files",
  testRunnerNodeArgs: ["--experimental-vm-modules", "--disable-warning=ExperimentalWarning"],
  jest: { configFile: "test/mutation/jest.config.js", enableFindRelatedTests: true },
  coverageAnalysis: "perTest",
  // A change of what a module computes once, when it is loaded, would be tried with all tests: minutes for each.
  ignoreStatic: true,
  concurrency: 2,
  // Types are stripped, not compiled: Stryker has nothing to change there, and does not know this compiler.
  tsconfigFile: "none",
  disableTypeChecks: false,
  ignorePatterns: ["/.data", "/coverage"],
  // Not below node_modules, where Node strips no types.
  tempDirName: ".mutation",
  reporters: ["clear-text", "json", "html", "progress-append-only"],
  clearTextReporter: { reportTests: false, logTests: false, allowColor: false, skipFull: true },
  jsonReporter: { fileName: "node_modules/.cache/stryker/report.json" },
  htmlReporter: { fileName: "node_modules/.cache/stryker/report.html" },
  // run.ts works out the score, with the second stage.
  thresholds: { high: 90, low: 85, break: null },
  timeoutMS: 60_000,
  dryRunTimeoutMinutes: 20,
};
