/**
 * `npm run test:mutation`: installs Stryker, which a plain install omits, and runs it with the given arguments. `--sample <n>` runs one in n
 * mutants, and prints the estimated mutation score of all; exit code 1 if it is below 85 %.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { installPackagesOf } from "../harness/optionalPackages.ts";

const args = process.argv.slice(2);
const at = args.indexOf("--sample");
const [, sample] = at < 0 ? [] : args.splice(at, 2);
await installPackagesOf(import.meta.dirname);
const stryker = join(import.meta.dirname, "node_modules/@stryker-mutator/core/bin/stryker.js");
const { status } = spawnSync(process.execPath, [stryker, "run", ...args], {
  stdio: "inherit",
  env: { ...process.env, GRAPHILE_ENV: "test", ...(sample && { PLAT_MUTATION_SAMPLE: sample }) },
});
process.exitCode = sample && status === 0 ? printScore() : (status ?? 1);

/** Prints the estimated score with its 95 % confidence interval, and returns the exit code. */
function printScore(): number {
  const { files } = JSON.parse(readFileSync("node_modules/.cache/stryker/report.json", "utf8")) as {
    files: Record<string, { mutants: { status: string }[] }>;
  };
  const statuses = Object.values(files).flatMap(({ mutants }) => mutants.map((mutant) => mutant.status));
  const count = (...wanted: string[]) => statuses.filter((one) => wanted.includes(one)).length;
  const detected = count("Killed", "Timeout");
  const valid = detected + count("Survived");
  const covered = 1 - count("NoCoverage") / (statuses.length - count("Ignored", "CompileError"));
  const share = detected / valid;
  const margin = 1.96 * Math.sqrt((share * (1 - share)) / valid);
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  console.log(
    `Ran ${valid} of ${statuses.length} mutants: ${detected} detected (${percent(share)}); tests cover ` +
      `${percent(covered)} of all. Mutation score: ${percent(share * covered)} (95 % confidence interval: ±${percent(margin * covered)}).`,
  );
  return share * covered < 0.85 ? 1 : 0;
}
