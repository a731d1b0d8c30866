/** Runs each test file about the API once, to see what it executes; what it was is kept in node_modules/.cache/mutation/reach. */
import { mkdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { testFiles } from "../harness/testFiles.js";
import { createTestProcess, type TestProcess } from "../mutants/testProcesses.ts";
import { contentHash } from "./contentHash.ts";
import type { Reach, Run } from "./reach.ts";

const repository = resolve(import.meta.dirname, "../..");
const folder = join(repository, "node_modules/.cache/mutation/reach");
/** Others test services as processes, the schema, or many operations at random, which takes minutes. */
const about =
  /^test\/(api|auth|consistency|exports|files|http|imports|limits|messages|monitoring|providers|webhooks)\//;

/** A test file, and what it executes. */
export interface TestFile extends Run {
  /** Relative to the repository. */
  file: string;
  /** Of its content. */
  hash: string;
  ms: number;
}

/** Those that pass without any mutant. */
export async function reachOfTestFiles(): Promise<TestFile[]> {
  await mkdir(folder, { recursive: true });
  const found: TestFile[] = [];
  const open: string[] = [];
  for (const pattern of testFiles({ long: false }).database) {
    const file = pattern.replace("<rootDir>/", "");
    if (!about.test(file)) continue;
    const known = await knownReach(file);
    if (known) found.push(known);
    else open.push(file);
  }
  if (open.length === 0) return found;
  console.log(`Runs ${open.length} test files once, to see what they execute.`);
  const testing = createTestProcess({ env: { PLAT_TEST_REACH: "1" } });
  try {
    for (const [index, file] of open.entries()) {
      const reached = await learn(testing, file);
      if (reached) found.push(reached);
      if ((index + 1) % 10 === 0) console.log(`${index + 1}/${open.length}`);
    }
  } finally {
    await testing.end();
  }
  return found;
}

const placeOf = (file: string): string => join(folder, `${file.replaceAll(/\W+/g, "_")}.json`);

/** What is known of it, if neither it nor what it executed has changed. */
async function knownReach(file: string): Promise<TestFile | undefined> {
  const text = await readFile(placeOf(file), "utf8").catch(() => undefined);
  if (text === undefined) return undefined;
  const known = JSON.parse(text) as TestFile;
  if (known.hash !== (await hashOf(file))) return undefined;
  const sources = Object.entries({ ...known.atStart, ...known.executed });
  for (const [source, { hash }] of sources) if (hash !== (await hashOf(source))) return undefined;
  return known;
}

async function learn(testing: TestProcess, file: string): Promise<TestFile | undefined> {
  const place = placeOf(file);
  await rm(place, { force: true });
  const from = performance.now();
  const failed = await testing.run({ file, reach: `${place}.run` }).catch((error: Error) => error.message);
  if (failed) {
    console.log(`${file} fails without any mutant, and is left out: ${failed}`);
    return undefined;
  }
  const run = JSON.parse(await readFile(`${place}.run`, "utf8")) as Run;
  const reached: TestFile = {
    file,
    hash: (await hashOf(file))!,
    ms: Math.round(performance.now() - from),
    ...run,
  };
  await writeFile(place, JSON.stringify(reached));
  await rm(`${place}.run`);
  return reached;
}

const hashes = new Map<string, string | undefined>();

/** Undefined if there is no such file. */
async function hashOf(file: string): Promise<string | undefined> {
  if (!hashes.has(file)) {
    const text = await readFile(join(repository, file), "utf8").catch(() => undefined);
    hashes.set(file, text === undefined ? undefined : contentHash(text));
  }
  return hashes.get(file);
}

/** How much of the source file it executes that few others do: a part that one in ten executes counts as a tenth of one that it executes alone. */
export function sharesOf(source: string, files: readonly TestFile[]): Map<string, number> {
  const ends = Math.max(0, ...files.map(({ executed }) => executed[source]?.parts.at(-1) ?? 0));
  const executing = new Uint32Array(ends);
  const each = (reach: Reach, visit: (offset: number) => void) => {
    const { parts } = reach[source] ?? { parts: [] };
    for (let i = 0; i < parts.length; i += 2)
      for (let offset = parts[i]!; offset < parts[i + 1]!; offset++) visit(offset);
  };
  for (const { executed } of files) each(executed, (offset) => executing[offset]!++);
  return new Map(
    files.map(({ file, executed }) => {
      let share = 0;
      each(executed, (offset) => (share += 1 / executing[offset]!));
      return [file, share];
    }),
  );
}
