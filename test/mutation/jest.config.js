/** The tests that mutants of the code at the edge of the service run against: those without a database, and without random requests. */
import { resolve } from "node:path";
import { testFiles } from "../harness/testFiles.js";

const { unit } = testFiles({ long: false });

export default {
  rootDir: resolve(import.meta.dirname, "../.."),
  roots: ["<rootDir>/test", "<rootDir>/src"],
  extensionsToTreatAsEsm: [".ts"],
  transform: { "\\.ts$": "<rootDir>/test/harness/strip-types.cjs" },
  testMatch: unit.filter((file) => /\/test\/(auth|limits|http)\/(?!fuzz)/.test(file)),
  testEnvironment: resolve(import.meta.dirname, "environment.ts"),
};
