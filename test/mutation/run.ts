/**
 * `npm run test:mutation`: installs Stryker, which a plain install omits, and runs it with the given arguments; then the mutants that it leaves are tried with
 * test files over a database. Prints the mutation score of both stages; exit code 1 if it is below 85 %.
 *
 * Options: `--sample <n>` takes one in n mutants, and estimates the score of all; `--stage 1` only runs Stryker, `--stage 2` takes its last report;
 * `--most <n>` tries at most n mutants of the second stage, at random; `--concurrency <n>` runs n mutants side by side. Stryker gets the others.
 */
import { spawnSync } from "node:child_process";
import { readFileSync } from "node:fs";
import { join, resolve } from "node:path";
import { installPackagesOf } from "../harness/optionalPackages.ts";
import { databaseStage, placeOf, type Mutant } from "./databaseStage.ts";
import { inRandomOrder, isSampled } from "./sample.ts";
import { mutationScore, type Part } from "./score.ts";

const repository = resolve(import.meta.dirname, "../..");
const needed = 0.85;

/** Of the report, as far as it is read. */
interface Report {
  files: Record<
    string,
    { source: string; mutants: (Omit<Mutant, "path" | "source"> & { status: string })[] }
  >;
}

const args = process.argv.slice(2);
const [sample, stage, most] = ["--sample", "--stage", "--most"].map(takeOption);
// Stryker gets it too.
const at = args.indexOf("--concurrency");
const concurrency = at < 0 ? 2 : Number(args[at + 1]);
const status = stage === "2" ? 0 : await runStryker();
process.exitCode = status === 0 ? await tell() : status;

/** Removes it from the arguments, which are for Stryker. */
function takeOption(name: string): string | undefined {
  const index = args.indexOf(name);
  return index < 0 ? undefined : args.splice(index, 2)[1];
}

async function runStryker(): Promise<number> {
  await installPackagesOf(import.meta.dirname);
  const stryker = join(import.meta.dirname, "node_modules/@stryker-mutator/core/bin/stryker.js");
  const run = spawnSync(process.execPath, [stryker, "run", ...args], {
    stdio: "inherit",
    env: { ...process.env, GRAPHILE_ENV: "test", ...(sample && { PLAT_MUTATION_SAMPLE: sample }) },
  });
  return run.status ?? 1;
}

/** The mutants of the last report, with their status. */
function readReport(): (Mutant & { status: string })[] {
  const text = readFileSync(join(repository, "node_modules/.cache/stryker/report.json"), "utf8");
  return Object.entries((JSON.parse(text) as Report).files).flatMap(([path, { source, mutants }]) => {
    if (readFileSync(join(repository, path), "utf8") !== source)
      throw new Error(`The report is about another content of ${path}: run Stryker again.`);
    return mutants.map((mutant) => ({ ...mutant, path, source }));
  });
}

/** Runs the second stage, prints what came of both, and returns the exit code. */
async function tell(): Promise<number> {
  const mutants = readReport();
  const having = (...wanted: string[]) => mutants.filter((one) => wanted.includes(one.status));
  const detected = having("Killed", "Timeout").length;
  const survivors = having("Survived");
  const unexecuted = having("NoCoverage");
  const tried = detected + survivors.length;
  const executed: Part & { all: number } = {
    all: mutants.length - unexecuted.length - having("Ignored", "CompileError").length,
    tried,
    detected,
  };
  console.log(
    `Unit tests: of ${executed.all + unexecuted.length} mutants they execute ${executed.all}; of these, ${tried} were tried and ${detected} killed.`,
  );
  const left = { tried: survivors.length, detected: 0 };
  const others = { all: unexecuted.length, tried: unexecuted.length, detected: 0 };
  if (stage !== "1") {
    const sampled = unexecuted.filter(({ id }) => isSampled(id, Number(sample ?? 1)));
    const random = inRandomOrder([...survivors, ...sampled]);
    const outcomes = await databaseStage(random.slice(0, Number(most ?? random.length)), { concurrency });
    const executedNowhere = outcomes.filter(({ files }) => files.length === 0);
    const survived = outcomes.filter(({ files, killedBy }) => files.length > 0 && !killedBy);
    const list = (what: string, some: typeof outcomes) => {
      if (some.length === 0) return;
      const lines = some.map(({ mutant }) => placeOf(mutant)).toSorted();
      console.log([`${what}:`, ...lines].join("\n  "));
    };
    list("Survived", survived);
    list("Not executed by any database test", executedNowhere);
    const killed = outcomes.filter(({ killedBy }) => killedBy).length;
    console.log(
      `Database tests: of ${random.length} mutants that the unit tests left, ${outcomes.length} were tried: ${killed} killed, ${survived.length} survived, ` +
        `${executedNowhere.length} are executed by none of them.`,
    );
    const ofStatus = (wanted: string): Part => {
      const some = outcomes.filter(({ mutant }) => (mutant as Mutant & { status: string }).status === wanted);
      return { tried: some.length, detected: some.filter(({ killedBy }) => killedBy).length };
    };
    Object.assign(left, ofStatus("Survived"));
    Object.assign(others, ofStatus("NoCoverage"));
  }
  const { score, margin } = mutationScore({ executed, left, unexecuted: others });
  const percent = (part: number) => `${(100 * part).toFixed(1)} %`;
  console.log(`Mutation score: ${percent(score)} (95 % confidence interval: ±${percent(margin)}).`);
  return score < needed ? 1 : 0;
}
