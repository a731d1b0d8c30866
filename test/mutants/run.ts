/**
 * `npm run test:mutants`: whether the tests notice when a rule of the database is missing. It takes policies, grants and checks away one by
 * one and runs the test files that use the table or function, those that use it most first, until one of them fails.
 *
 * Options: `--only <text>` takes those whose id has the text; `--kind policy|grant|function`; `--alike` takes one of those that a generator
 * made alike; `--sample <n>` takes n of them, evenly spread; `--files <n>` gives up after so many test files (6); `--jobs <n>` side by side.
 * The result of each is kept in node_modules/.cache/mutants; `--again` tries those that survived, `--afresh` all.
 */
import { execFile } from "node:child_process";
import { appendFile, mkdir, readFile, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, relative, resolve } from "node:path";
import { parseArgs, promisify } from "node:util";
import { Client } from "pg";
import { loadModule } from "pgsql-parser";
import { withScratchDatabase } from "../../src/cli/scratchDatabase.ts";
import { findMutants, type Mutant } from "./mutants.ts";
import { equivalents } from "./equivalents.ts";
import { readUsage, type Usage } from "./usage.ts";

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    kind: { type: "string" },
    alike: { type: "boolean" },
    sample: { type: "string" },
    files: { type: "string", default: "6" },
    jobs: { type: "string", default: String(availableParallelism()) },
    again: { type: "boolean" },
    afresh: { type: "boolean" },
    learn: { type: "boolean" },
  },
});
const repository = resolve(import.meta.dirname, "../..");
const cache = join(repository, "node_modules/.cache/mutants");
const usageFolder = join(cache, "usage");
const resultsFile = join(cache, "results.jsonl");
const runWithinMs = 300_000;

interface Result {
  id: string;
  /** Stands for what the mutant is: another text is another mutant. */
  sql: string;
  /** The test file that failed, or nothing where none did. */
  killedBy?: string;
  tried: string[];
}

await loadModule();
const usage = await learn();
const chosen = choose(await mutants());
const known = options.afresh ? new Map<string, Result>() : await results();
const open = chosen.filter(({ id, sql }) => {
  const result = known.get(id);
  return !result || result.sql !== sql || (options.again && !result.killedBy);
});
console.log(`${chosen.length} mutants, ${chosen.length - open.length} of them known.`);
const queue = open.values();
let done = 0;
await Promise.all(Array.from({ length: Number(options.jobs) }, () => work()));
tell();

async function work(): Promise<void> {
  for (const mutant of queue) {
    const result = await tryOne(mutant);
    known.set(mutant.id, result);
    await appendFile(resultsFile, `${JSON.stringify(result)}\n`);
    done++;
    const outcome = result.killedBy
      ? `killed by ${result.killedBy}`
      : `SURVIVED ${result.tried.length} files`;
    console.log(`${done}/${open.length} ${mutant.id}: ${outcome}`);
  }
}

async function tryOne({ id, sql, about }: Mutant): Promise<Result> {
  const tried: string[] = [];
  for (const file of filesAbout(about).slice(0, Number(options.files))) {
    tried.push(file);
    if (!(await passes([file], { PLAT_TEST_MUTANT: sql }))) return { id, sql, killedBy: file, tried };
  }
  return { id, sql, tried };
}

/** Those first for which it is the greatest part of what they do. */
function filesAbout(object: string): string[] {
  return usage
    .map(({ file, used }) => ({ file, part: (used[object] ?? 0) / total(used) }))
    .filter(({ part }) => part > 0)
    .toSorted((a, b) => b.part - a.part)
    .map(({ file }) => relative(repository, file));
}

function total(used: Record<string, number>): number {
  return Object.values(used).reduce((sum, amount) => sum + amount, 0);
}

async function passes(args: string[], env: Record<string, string>): Promise<boolean> {
  const jest = ["node_modules/jest/bin/jest.js", "--bail", "--silent"];
  try {
    await promisify(execFile)(process.execPath, [...jest, ...args], {
      cwd: repository,
      timeout: runWithinMs,
      maxBuffer: 2 ** 26,
      env: {
        ...process.env,
        GRAPHILE_ENV: "test",
        NODE_COMPILE_CACHE: join(repository, "node_modules/.cache/node"),
        NODE_OPTIONS: "--experimental-vm-modules --disable-warning=ExperimentalWarning",
        ...env,
      },
    });
    return true;
  } catch {
    return false;
  }
}

/** Runs all tests once, to see which use what; kept until `--learn`. */
async function learn(): Promise<Usage[]> {
  if (options.learn) await rm(usageFolder, { recursive: true, force: true });
  await mkdir(usageFolder, { recursive: true });
  const found = await readUsage(usageFolder);
  if (found.length > 0) return found;
  console.log("Runs all tests once, to see which tables and functions they use.");
  if (!(await passes([], { PLAT_TEST_USAGE: usageFolder })))
    throw new Error("Some tests fail without any mutant: mend them first.");
  return readUsage(usageFolder);
}

async function mutants(): Promise<Mutant[]> {
  let found: Mutant[] = [];
  await withScratchDatabase(async (ownerUrl) => {
    const client = new Client({ connectionString: ownerUrl });
    await client.connect();
    try {
      found = await findMutants(client);
    } finally {
      await client.end();
    }
  });
  return found;
}

function choose(all: Mutant[]): Mutant[] {
  const kinds = new Set<string>();
  const wanted = all.filter(({ id, kind, likeness }) => {
    if (equivalents.some(({ pattern }) => pattern.test(id))) return false;
    if (options.only && !id.includes(options.only)) return false;
    if (options.kind && kind !== options.kind) return false;
    if (options.alike && kinds.has(likeness)) return false;
    kinds.add(likeness);
    return true;
  });
  const amount = Number(options.sample ?? wanted.length);
  return wanted.filter(
    (_, index) =>
      Math.floor((index * amount) / wanted.length) < Math.floor(((index + 1) * amount) / wanted.length),
  );
}

async function results(): Promise<Map<string, Result>> {
  const lines = await readFile(resultsFile, "utf8").catch(() => "");
  return new Map(
    lines
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Result)
      .map((result) => [result.id, result]),
  );
}

function tell(): void {
  const survivors = chosen.filter(({ id }) => !known.get(id)?.killedBy);
  console.log(`\n${chosen.length - survivors.length} of ${chosen.length} mutants were killed.`);
  for (const { id } of survivors)
    console.log(`  survived: ${id} (${known.get(id)?.tried.join(", ") || "no test uses it"})`);
  if (survivors.length > 0) process.exitCode = 1;
}
