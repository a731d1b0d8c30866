/** `npm run test:mutation`: installs Stryker, which a plain install leaves out, and runs it with the given arguments. */
import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { installPackagesOf } from "../harness/optionalPackages.ts";

await installPackagesOf(import.meta.dirname);
const stryker = spawn(
  process.execPath,
  [
    join(import.meta.dirname, "node_modules/@stryker-mutator/core/bin/stryker.js"),
    "run",
    ...process.argv.slice(2),
  ],
  { stdio: "inherit", env: { ...process.env, GRAPHILE_ENV: "test" } },
);
// Ctrl-C reaches both; Stryker removes its sandboxes then.
process.on("SIGINT", () => undefined);
const [code] = (await once(stryker, "exit")) as [number | null];
process.exitCode = code ?? 1;
