/**
 * `npm run test:mutation`: installs Stryker, which a plain install omits, and runs it with the given arguments. `--sample <n>` tries one of n
 * changes, and prints the score that follows for all of them; exit code 1 if it is below 85 %.
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
  const tried = detected + count("Survived");
  const executed = 1 - count("NoCoverage") / (statuses.length - count("Ignored", "CompileError"));
  const share = detected / tried;
  const margin = 1.96 * Math.sqrt((share * (1 - share)) / tried);
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  console.log(
    `Tried ${tried} of ${statuses.length} changes: ${detected} detected (${percent(share)}); tests execute ` +
      `${percent(executed)} of all. Score: ${percent(share * executed)} (95 %: ±${percent(margin * executed)}).`,
  );
  return share * executed < 0.85 ? 1 : 0;
}
