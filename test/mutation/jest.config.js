import { resolve } from "node:path";
import { testFiles } from "../harness/testFiles.js";

const { unit } = testFiles({ long: false });

export default {
  rootDir: resolve(import.meta.dirname, "../.."),
  roots: ["<rootDir>/test", "<rootDir>/src"],
  extensionsToTreatAsEsm: [".ts"],
  transform: { "\\.ts$": "<rootDir>/test/harness/strip-types.cjs" },
  testMatch: unit.filter((file) => /\/test\/(auth|limits|http)\//.test(file) && !/http\/fuzz/.test(file)),
  testEnvironment: resolve(import.meta.dirname, "environment.ts"),
};
