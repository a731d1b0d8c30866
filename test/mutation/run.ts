/** `npm run test:mutation`: installs Stryker, which a plain install omits, and runs it with the given arguments. */
import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { installPackagesOf } from "../harness/optionalPackages.ts";

await installPackagesOf(import.meta.dirname);
const stryker = join(import.meta.dirname, "node_modules/@stryker-mutator/core/bin/stryker.js");
const { status } = spawnSync(process.execPath, [stryker, "run", ...process.argv.slice(2)], {
  stdio: "inherit",
  env: { ...process.env, GRAPHILE_ENV: "test" },
});
process.exitCode = status ?? 1;
