/**
 * The second stage of `npm run test:mutation`: mutants that the unit tests leave are tried with test files over a database, until one of them fails. It takes the files
 * that execute the changed place: of these, those that execute most of what few others do in the source file, since they are about it. What came of a
 * mutant is kept in node_modules/.cache/mutation/results.jsonl, by the content of all these files.
 */
import { appendFile, readFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { createTestProcess } from "../mutants/testProcesses.ts";
import { contentHash } from "./contentHash.ts";
import type { FileReplacement } from "./mutant.ts";
import { isIn } from "./reach.ts";
import { reachOfTestFiles, sharesOf, type TestFile } from "./reachedBy.ts";
import { offsetOf, type Replacement } from "./replacement.ts";

const repository = resolve(import.meta.dirname, "../..");
const resultsFile = join(repository, "node_modules/.cache/mutation/results.jsonl");
/** Test files for a mutant. */
const mostFiles = 4;
/** A test file takes a few seconds, and several times as long on a busy machine. Of longer ones, a multiple of what they take. */
const runWithinMs = 90_000;
const runWithinTimes = 3;

/** A mutant of the report. */
export interface Mutant extends Replacement {
  id: string;
  /** Relative to the repository. */
  path: string;
  /** The text of the file without the change. */
  source: string;
}

/** What came of it. */
export interface Outcome {
  mutant: Mutant;
  /** The test that failed; undefined if none did. */
  killedBy?: string;
  /** The test files that it was tried with; none if no test executes it. */
  files: string[];
}

/** What came of a mutant with one test file. */
interface Result {
  /** Of the contents of both. */
  key: string;
  /** The test that failed; null if none did. */
  failed: string | null;
}

/** Tries them in their order, some side by side. */
export async function databaseStage(
  mutants: readonly Mutant[],
  { concurrency = 1 } = {},
): Promise<Outcome[]> {
  const testFiles = await reachOfTestFiles();
  const known = await knownResults();
  const chosen = mutants.map((mutant) => ({ mutant, files: filesFor(mutant, testFiles) }));
  const open = chosen.filter(({ mutant, files }) => outcomeOf(mutant, files, known) === undefined);
  const [first] = open;
  if (first) await tryUnchanged(first.mutant, first.files);
  const queue = open.values();
  let done = 0;
  const work = async () => {
    for (const { mutant, files } of queue) {
      await tryFiles(mutant, files, known);
      const killedBy = outcomeOf(mutant, files, known);
      console.log(
        `${++done}/${open.length} ${placeOf(mutant)}: ${killedBy ? `killed by ${killedBy}` : "SURVIVED"}`,
      );
    }
  };
  await Promise.all(Array.from({ length: concurrency }, work));
  return chosen.map(({ mutant, files }) => {
    const killedBy = outcomeOf(mutant, files, known);
    return { mutant, files: files.map(({ file }) => file), ...(killedBy && { killedBy }) };
  });
}

/** The test that failed with it, null if all files passed, undefined if some of them have not been tried. */
function outcomeOf(
  mutant: Mutant,
  files: readonly TestFile[],
  known: ReadonlyMap<string, Result>,
): string | null | undefined {
  const results = files.map((file) => known.get(keyOf(mutant, file)));
  const killed = results.findIndex((result) => result?.failed);
  if (killed >= 0) return `${files[killed]!.file}: ${results[killed]!.failed}`;
  return results.every(Boolean) ? null : undefined;
}

/** Where it is and what it does, in a line. */
export function placeOf({ path, source, location, replacement }: Mutant): string {
  const before = source.slice(offsetOf(source, location.start), offsetOf(source, location.end));
  const brief = (text: string) => {
    const line = text.replaceAll(/\s+/g, " ");
    return line.length > 60 ? `${line.slice(0, 59)}…` : line;
  };
  return `${path}:${location.start.line} ${brief(before)} → ${brief(replacement)}`;
}

/** The shortest first, of those that are most about it for the time that they take. What is executed before the tests of a file, is executed with any file. */
function filesFor({ path, source, location }: Mutant, testFiles: readonly TestFile[]): TestFile[] {
  const offset = offsetOf(source, location.start);
  const executes = ({ [path]: found }: TestFile["executed"]) => found && isIn(found.parts, offset);
  const executing = testFiles.filter(({ executed }) => executes(executed));
  const files = executing.length > 0 ? executing : testFiles.filter(({ atStart }) => executes(atStart));
  if (files.length === 0) return [];
  const shares = sharesOf(path, testFiles);
  const worth = ({ file, ms }: TestFile) => shares.get(file)! / Math.sqrt(ms);
  return files
    .toSorted((a, b) => worth(b) - worth(a))
    .slice(0, mostFiles)
    .toSorted((a, b) => a.ms - b.ms);
}

const keyOf = ({ path, source, location, replacement }: Mutant, { file, hash }: TestFile): string =>
  contentHash(path, source, JSON.stringify(location), replacement, file, hash);

/** Without a change, all tests must pass in the same processes. */
async function tryUnchanged(mutant: Mutant, files: readonly TestFile[]): Promise<void> {
  const { source, location } = mutant;
  const replacement = source.slice(offsetOf(source, location.start), offsetOf(source, location.end));
  const failed = await runFiles({ ...mutant, replacement }, files);
  if (failed) throw new Error(`A test fails without any mutant: ${failed}`);
}

/** Notes what comes of each file. */
async function tryFiles(
  mutant: Mutant,
  files: readonly TestFile[],
  known: Map<string, Result>,
): Promise<void> {
  const open = files.filter((file) => !known.has(keyOf(mutant, file)));
  await runFiles(mutant, open, async (file, failed) => {
    const result: Result = { key: keyOf(mutant, file), failed };
    known.set(result.key, result);
    await appendFile(resultsFile, `${JSON.stringify(result)}\n`);
  });
}

/**
 * Runs them until one fails. A process for each mutant, since what the code remembers must be its own; if it ends, or does not begin, that is a failure too.
 * @returns the test that failed
 */
async function runFiles(
  { path, location, replacement }: Mutant,
  files: readonly TestFile[],
  each?: (file: TestFile, failed: string | null) => Promise<void>,
): Promise<string | null> {
  const change: FileReplacement = { path: join(repository, path), location, replacement };
  const testing = createTestProcess({ env: { PLAT_SOURCE_MUTANT: JSON.stringify(change) } });
  try {
    for (const one of files) {
      const { file, ms } = one;
      const withinMs = Math.max(runWithinMs, runWithinTimes * ms);
      const failed = await testing.run({ file, withinMs }).catch((error: Error) => error.message);
      await each?.(one, failed);
      if (failed) return `${file}: ${failed}`;
    }
    return null;
  } finally {
    await testing.end();
  }
}

async function knownResults(): Promise<Map<string, Result>> {
  const lines = await readFile(resultsFile, "utf8").catch(() => "");
  return new Map(
    lines
      .split("\n")
      .filter(Boolean)
      .map((line) => JSON.parse(line) as Result)
      .map((result) => [result.key, result]),
  );
}
