/** Determines which parts of which source files a test file executes, from the coverage that V8 counts. */
import { readFile } from "node:fs/promises";
import { Session, type Profiler } from "node:inspector/promises";
import { relative, resolve, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { contentHash } from "./contentHash.ts";

const repository = resolve(import.meta.dirname, "../..");
/** Where mutants are; see stryker.config.js. */
const mutated = /^src\/(auth|limits|admission|http)\/.*(?<!\.d)\.ts$/;

/** The executed parts of a file. */
export interface Executed {
  /** Of the content. */
  hash: string;
  /** Offsets at which a part begins and ends, in turn. */
  parts: number[];
}

/** By path, relative to the repository. */
export type Reach = Record<string, Executed>;

/** What one test file executes; what its process does before, such as building the schema, is apart. */
export interface Run {
  atStart: Reach;
  executed: Reach;
}

/** Counts from the start of the process: V8 counts blocks only in what it compiles afterwards. */
export async function startCounting(): Promise<() => Promise<Reach>> {
  const session = new Session();
  session.connect();
  await session.post("Profiler.enable");
  await session.post("Profiler.startPreciseCoverage", { callCount: true, detailed: true });
  return async () => {
    const { result } = await session.post("Profiler.takePreciseCoverage");
    return await reachOf(result);
  };
}

async function reachOf(scripts: Profiler.ScriptCoverage[]): Promise<Reach> {
  const found = new Map<string, Uint8Array>();
  const texts = new Map<string, string>();
  for (const { url, functions } of scripts) {
    // The realm of the process has URLs, those of tests have paths.
    const path = url.startsWith("file:") ? fileURLToPath(url) : url;
    const file = relative(repository, path).replaceAll(sep, "/");
    if (!mutated.test(file)) continue;
    if (!texts.has(file)) texts.set(file, await readFile(path, "utf8"));
    const executed = executedIn(functions, texts.get(file)!.length);
    const before = found.get(file);
    found.set(file, before ? before.map((one, i) => one | executed[i]!) : executed);
  }
  const reach: Reach = {};
  for (const [file, executed] of found) {
    const parts = partsOf(executed);
    if (parts.length > 0) reach[file] = { hash: contentHash(texts.get(file)!), parts };
  }
  return reach;
}

/**
 * For each character whether it was executed: the innermost block decides. What a module does when it is loaded does not count: a test file
 * that only imports it is not about it.
 */
export function executedIn(functions: Profiler.FunctionCoverage[], length: number): Uint8Array {
  const executed = new Uint8Array(length);
  // Those of a script that contain others come first, and so do the blocks of a function.
  for (const { ranges } of functions) {
    const isModule = ranges[0]!.startOffset === 0 && ranges[0]!.endOffset >= length;
    for (const { startOffset, endOffset, count } of ranges)
      executed.fill(count > 0 && !isModule ? 1 : 0, startOffset, endOffset);
  }
  return executed;
}

export function partsOf(executed: Uint8Array): number[] {
  const parts: number[] = [];
  for (let i = 0; i <= executed.length; i++) if ((executed[i] ?? 0) !== (executed[i - 1] ?? 0)) parts.push(i);
  return parts;
}

/** Whether the character at the offset is in one of the parts. */
export function isIn(parts: readonly number[], offset: number): boolean {
  return parts.findLastIndex((from) => from <= offset) % 2 === 0;
}
