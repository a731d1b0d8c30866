/**
 * `npm run test:mutants`: whether the tests notice when a rule of the database is missing. It takes policies, grants and checks away one by
 * one. First it looks, in transactions that are rolled back, of grants whether a rule over the catalog misses one, and of all whether anybody reaches other rows than test/schema/access.txt says, which takes
 * a tenth of a second; then, of functions, whether a mutation takes other permissions than docs/mutations.md says; then it runs the test
 * files that use the table or function, those that use it most first, until one of them fails.
 * docs/mutants.md says what to do about those that survive.
 *
 * Options: `--only <text>` takes those whose id has the text, `--kind policy|grant|function` one kind; `--each` takes also those that a
 * generator made alike; `--sample <n>` takes n of them, evenly spread; `--quick` leaves test files out; `--files <n>` gives up after so many
 * of them (6); `--jobs <n>` runs so many side by side. The result of each is kept in node_modules/.cache/mutants; `--again` tries those
 * that survived, `--afresh` all; `--learn` finds out anew which files use what.
 */
import { readFileSync } from "node:fs";
import { appendFile, mkdir, readFile, rm } from "node:fs/promises";
import { availableParallelism } from "node:os";
import { join, resolve } from "node:path";
import { parseArgs } from "node:util";
import { Client } from "pg";
import { loadModule } from "pgsql-parser";
import { createTestDatabase } from "../harness/database.ts";
import globalSetup from "../harness/globalSetup.ts";
import globalTeardown from "../harness/globalTeardown.ts";
import { databaseFiles } from "./files.ts";
import { findMutants, type Mutant } from "./mutants.ts";
import { equivalents } from "./equivalents.ts";
import { startOperationTrial, type OperationTrial } from "./operations.ts";
import { startRowTrial, type RowTrial } from "./rows.ts";
import { tryGrants } from "./grants.ts";
import { createTestProcess, type TestProcess } from "./testProcesses.ts";
import { readUsage, type Usage } from "./usage.ts";
import { camel } from "../../src/schema/codecNames.ts";

const { values: options } = parseArgs({
  options: {
    only: { type: "string" },
    kind: { type: "string" },
    each: { type: "boolean" },
    sample: { type: "string" },
    quick: { type: "boolean" },
    files: { type: "string", default: "6" },
    jobs: { type: "string", default: String(availableParallelism()) },
    again: { type: "boolean" },
    afresh: { type: "boolean" },
    learn: { type: "boolean" },
  },
});
const repository = resolve(import.meta.dirname, "../..");
const cache = join(repository, "node_modules/.cache/mutants");
const definersFile = "test/schema/definers.test.ts";
const usageFolder = join(cache, "usage");
const resultsFile = join(cache, "results.jsonl");

interface Result {
  id: string;
  /** Identifies the content of the mutant; a changed text is another mutant. */
  sql: string;
  /** The test that failed; undefined if none did. */
  killedBy?: string;
  /** Reason why the change has no effect. */
  equivalent?: string;
  /** Completed stages: "rules", "rows", "operations", and test files. */
  tried: string[];
}

await loadModule();
await mkdir(cache, { recursive: true });
const known = options.afresh ? new Map<string, Result>() : await results();
let chosen: Mutant[] = [];
await globalSetup({ nonFlagArgs: [] });
try {
  const database = await createTestDatabase();
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  const all = await findMutants(client);
  await client.end();
  chosen = choose(all);
  const open = (stage: string) => chosen.filter((mutant) => isOpen(mutant, stage));
  const granted = open("rules").filter(({ kind }) => kind === "grant");
  if (granted.length > 0) await tryRules(database.ownerUrl, granted);
  if (open("rows").length > 0) await tryRows(await startRowTrial(database.ownerUrl), open("rows"));
  const unnoticed = () => open("operations").filter(({ undo }) => undo);
  if (unnoticed().length > 0) await tryOperations(await startOperationTrial(), unnoticed());
  if (!options.quick) await tryTests(open("tests"));
} finally {
  await globalTeardown();
}
tell();

/** Whether there is something to do: a stage that it has not passed, or everything again if nothing detected it. */
function isOpen({ id, sql }: Mutant, stage: string): boolean {
  const result = known.get(id);
  if (!result || result.sql !== sql) return true;
  if (result.killedBy || result.equivalent) return false;
  return options.again || !result.tried.some((tried) => (tried.endsWith(".ts") ? "tests" : tried) === stage);
}

async function note(
  mutant: Mutant,
  killedBy: string | undefined,
  tried: string[],
  equivalent?: string,
): Promise<void> {
  const { id, sql } = mutant;
  const before = known.get(id);
  const all = [...new Set([...(before?.sql === sql ? before.tried : []), ...tried])];
  const result: Result = {
    id,
    sql,
    ...(killedBy && { killedBy }),
    ...(equivalent && { equivalent }),
    tried: all,
  };
  known.set(id, result);
  await appendFile(resultsFile, `${JSON.stringify(result)}\n`);
}

async function tryRules(databaseUrl: string, open: Mutant[]): Promise<void> {
  for (const { mutant, rule, equivalent } of await tryGrants(databaseUrl, open))
    await note(mutant, rule && `test/checks/catalog.test.ts: ${rule}`, ["rules"], equivalent);
}

async function tryRows(trial: RowTrial, open: Mutant[]): Promise<void> {
  let died = 0;
  for (const [index, mutant] of open.entries()) {
    const noticed = await trial.notices(mutant);
    if (noticed) died++;
    await note(mutant, noticed && `test/schema/access.test.ts: ${noticed}`, ["rows"]);
    if ((index + 1) % 100 === 0) console.log(`rows: ${index + 1}/${open.length}, ${died} killed`);
  }
  await trial.end();
}

async function tryOperations(trial: OperationTrial, open: Mutant[]): Promise<void> {
  console.log(`operations: no input for ${trial.untried.join(", ") || "none"}`);
  let died = 0;
  try {
    for (const [index, mutant] of open.entries()) {
      const noticed = await trial.notices(mutant);
      if (noticed) died++;
      await note(mutant, noticed && `test/fuzz/requirements.test.ts: ${noticed}`, ["operations"]);
      if ((index + 1) % 20 === 0) console.log(`operations: ${index + 1}/${open.length}, ${died} killed`);
    }
  } finally {
    // The end of the cluster, which its connections do not survive, would hide an error.
    await trial.end();
  }
}

async function tryTests(open: Mutant[]): Promise<void> {
  if (open.length === 0) return;
  const processes = Array.from({ length: Number(options.jobs) }, () => createTestProcess());
  try {
    const usage = await learn(processes);
    const queue = open.values();
    let done = 0;
    await Promise.all(
      processes.map(async (testing) => {
        for (const mutant of queue) {
          const about = filesAbout(mutant, usage).filter((file) => file !== definersFile);
          // With a mutant, it only calls that function.
          const files = mutant.sql.includes("SECURITY DEFINER") ? [definersFile] : [];
          files.push(...about.slice(0, Number(options.files)));
          const { killedBy, tried } = await tryFiles(testing, mutant, files).catch((error: Error) => {
            console.log(error.message);
            return { killedBy: undefined, tried: [] };
          });
          await note(mutant, killedBy, tried);
          console.log(
            `${++done}/${open.length} ${mutant.id}: ${killedBy ? `killed by ${killedBy}` : "SURVIVED"}`,
          );
        }
      }),
    );
  } finally {
    await Promise.all(processes.map((testing) => testing.end()));
  }
}

async function tryFiles(process: TestProcess, { sql }: Mutant, files: string[]) {
  const tried: string[] = [];
  for (const file of files) {
    tried.push(file);
    const failed = await process.run({ file, sql });
    if (failed) return { killedBy: `${file}: ${failed}`, tried };
  }
  return { killedBy: undefined, tried };
}

/**
 * For a check, the files in which it refuses somebody, those first in which least does: without it, nothing changes anywhere else. Of others
 * those first for which it is the greatest part of what they do. A function that PostgreSQL puts in the place of its call is not counted: for
 * such those that name its operation, or else those of the table that its name begins with.
 */
function filesAbout({ about, refusesAt }: Mutant, usage: Usage[]): string[] {
  if (refusesAt)
    return usage
      .filter(({ refused }) => refused[refusesAt])
      .toSorted((a, b) => total(a.used) - total(b.used))
      .map(({ file }) => file);
  const using = (object: string) =>
    usage
      .map(({ file, used }) => ({ file, part: (used[object] ?? 0) / total(used) }))
      .filter(({ part }) => part > 0)
      .toSorted((a, b) => b.part - a.part)
      .map(({ file }) => file);
  const files = using(about);
  if (files.length > 0) return files;
  const operation = new RegExp(`\\b${camel(about.split(".")[1]!)}\\b`);
  const naming = usage
    .filter(({ file }) => operation.test(readFileSync(join(repository, file), "utf8")))
    .toSorted((a, b) => total(a.used) - total(b.used))
    .map(({ file }) => file);
  if (naming.length > 0) return naming;
  const tables = new Set(usage.flatMap(({ used }) => Object.keys(used)));
  const words = about.split("_");
  const table = words
    .map((_, i) => words.slice(0, words.length - i).join("_"))
    .find((name) => tables.has(name));
  return table ? using(table) : [];
}

function total(used: Record<string, number>): number {
  return Object.values(used).reduce((sum, amount) => sum + amount, 0);
}

/**
 * Runs each file once, to see which tables and functions it uses; kept until `--learn`. One that fails without any mutant tells nothing:
 * it is left out, and run again the next time.
 */
async function learn(processes: TestProcess[]): Promise<Usage[]> {
  if (options.learn) await rm(usageFolder, { recursive: true, force: true });
  await mkdir(usageFolder, { recursive: true });
  const learnt = new Set((await readUsage(usageFolder)).map(({ file }) => file));
  const files = databaseFiles().filter((file) => !learnt.has(file));
  if (files.length > 0)
    console.log(`Runs ${files.length} test files once, to see which tables and functions they use.`);
  const queue = files.values();
  const failing = new Set<string>();
  await Promise.all(
    processes.map(async (process) => {
      for (const file of queue) {
        const failed = await process.run({ file, usage: usageFolder }).catch((error: Error) => error.message);
        if (!failed) continue;
        console.log(`${file} fails without any mutant, and is left out: ${failed}`);
        failing.add(file);
      }
    }),
  );
  return await readUsage(usageFolder, failing);
}

function choose(all: Mutant[]): Mutant[] {
  const kinds = new Set<string>();
  const wanted = all.filter(({ id, kind, likeness }) => {
    if (equivalents.some(({ pattern }) => pattern.test(id))) return false;
    if (options.only && !id.includes(options.only)) return false;
    if (options.kind && kind !== options.kind) return false;
    if (!options.each && kinds.has(likeness)) return false;
    kinds.add(likeness);
    return true;
  });
  const amount = Number(options.sample ?? wanted.length);
  return wanted
    .filter(
      (_, index) =>
        Math.floor((index * amount) / wanted.length) < Math.floor(((index + 1) * amount) / wanted.length),
    )
    .toSorted((a, b) => rank(a) - rank(b));
}

/** Order of severity of survivors: permissions first, then other checks, then possibly superfluous rules. */
function rank({ kind, change }: Mutant): number {
  if (kind === "policy") return 0;
  if (kind === "grant") return 3;
  return /_can\(|scopes_allow|_sees\(|sees_|whole_account|require_(?!step|currency)|viewer_|lacks/.test(
    change,
  )
    ? 1
    : 2;
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
  const of = (what: "killedBy" | "equivalent") => chosen.filter(({ id }) => known.get(id)?.[what]).length;
  const survivors = chosen.filter(({ id }) => !known.get(id)?.killedBy && !known.get(id)?.equivalent);
  const seen = of("equivalent") > 0 ? `, ${of("equivalent")} change nothing that anybody could see` : "";
  console.log(`\n${of("killedBy")} of ${chosen.length} mutants were killed${seen}.`);
  for (const { id } of survivors)
    console.log(`  survived: ${id} (${known.get(id)?.tried.join(", ") || "no test uses it"})`);
  if (survivors.length > 0) process.exitCode = 1;
}
