import { readdir, readFile } from "node:fs/promises";
import { dirname, join, resolve } from "node:path";

/** The root of the repository. */
export const repository = resolve(import.meta.dirname, "../..");

/** The files below a folder with such an extension. */
export async function filesBelow(folder: string, end: RegExp): Promise<string[]> {
  const entries = await readdir(join(repository, folder), { recursive: true, withFileTypes: true });
  return entries
    .filter((entry) => entry.isFile() && end.test(entry.name))
    .map((entry) => join(entry.parentPath, entry.name).slice(repository.length + 1))
    .toSorted();
}

/** Words of the sources that call functions from outside of the database. */
export interface SourceWords {
  /** TypeScript, the crontab, SQL run by migrations, and the commands for operators in the guides. */
  all: ReadonlySet<string>;
  /** Words of the sources that background work runs. */
  worker: ReadonlySet<string>;
  /** Functions with their schemas that the API and background work call, with the rights of their login roles. */
  service: ReadonlySet<string>;
}

/** Sources that run with the rights of the owner, or do not run. */
const notOfService = /^src\/(checks|cli|demo|docs|doctor)\//;

/**
 * The modules that src/startBackground.ts starts with the connection of background work, except for tasks, and their
 * imports.
 */
const workerParts = [
  "src/worker.ts",
  "src/live/commits.ts",
  "src/webhooks/dispatcher.ts",
  "src/notifications/reader.ts",
  "src/workflows/runner.ts",
  "src/workflows/triggers.ts",
  "src/integrations/integrations.ts",
  "src/providers/payments/sandbox/index.ts",
];

const read = (file: string) => readFile(join(repository, file), "utf8");
const wordsOf = (text: string) => text.match(/[a-z]\w+/g) ?? [];

/** Every word of the sources that call functions. */
export async function sourceWords(): Promise<SourceWords> {
  const [all, worker, service] = await Promise.all([allWords(), workerSources(), serviceCalls()]);
  return { all, worker: new Set(worker.flatMap(wordsOf)), service };
}

/** The text of every file that background work runs. */
export async function workerSources(): Promise<string[]> {
  const files = new Set([...workerParts, ...(await filesBelow("src/tasks", /\.ts$/))]);
  const texts: string[] = [];
  // A file that is added during the iteration is visited as well.
  for (const file of files) {
    const text = await read(file);
    texts.push(text);
    for (const [, path] of text.matchAll(/\b(?:from|import) ?\(?"(\.[^"]+\.ts)"/g))
      files.add(join(dirname(file), path!));
  }
  return texts;
}

async function serviceCalls(): Promise<Set<string>> {
  const files = (await filesBelow("src", /\.ts$/)).filter((file) => !notOfService.test(file));
  const texts = await Promise.all(files.map(read));
  return new Set(texts.flatMap((text) => text.match(/\bapp_(?:hidden|private)\.\w+(?=\()/g) ?? []));
}

async function allWords(): Promise<Set<string>> {
  const words = new Set<string>();
  const add = (text: string) => {
    for (const word of wordsOf(text)) words.add(word);
  };
  for (const file of await filesBelow("src", /\.ts$|^crontab$/)) add(await read(file));
  for (const file of await filesBelow("migrations", /\.sql$/)) add(calls(await read(file)));
  for (const file of await filesBelow("docs", /\.md$/)) add(commands(await read(file)));
  return words;
}

/** The statements of a migration that run once, such as `select app_private.make_record(…)`, without their string arguments. */
function calls(sql: string): string {
  return [...sql.matchAll(/^(?:select|call|perform) [\s\S]*?;/gm)]
    .map(([statement]) => statement.replace(/'(?:''|[^'])*'/g, ""))
    .join("\n");
}

/** `select app_private.fill_search_texts()` in a guide. */
function commands(guide: string): string {
  return [...guide.matchAll(/\bselect (app_\w+\.\w+)\(/g)].map(([, name]) => name).join("\n");
}
