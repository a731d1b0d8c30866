/** Determines which tables and functions each test file uses, from the statistics of its databases. */
import { readdir, readFile, rm, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { Client } from "pg";

const repository = resolve(import.meta.dirname, "../..");

export interface Usage {
  /** Relative to the repository. */
  file: string;
  /** Number of calls of each function and of uses of each table, with their schemas. */
  used: Record<string, number>;
  /** Number of refusals by line of a function: `app_public.cancel_purchase(uuid) line 12`. */
  refused: Record<string, number>;
}

/** Makes PostgreSQL count the calls of a database's functions, and log the lines that led to each error. */
export const observe = (database: string): string =>
  `alter database ${database} set track_functions = 'all'; alter database ${database} set log_min_messages = 'error'`;

/**
 * Records the usage in the database of the running test file. Statistics are complete once its connections have
 * ended.
 */
export async function noteUsage(ownerUrl: string, folder: string): Promise<void> {
  const path = (globalThis as { expect?: typeof import("@jest/globals").expect }).expect?.getState().testPath;
  if (!path) return;
  const file = relative(repository, path);
  const client = new Client({ connectionString: ownerUrl });
  try {
    await client.connect();
  } catch {
    // It was already dropped.
    return;
  }
  try {
    const { rows } = await client.query<{ name: string; amount: string }>(
      `select schemaname || '.' || funcname as name, sum(calls) as amount from pg_stat_user_functions group by 1
       union all
       select schemaname || '.' || relname, (coalesce(seq_scan, 0) + coalesce(idx_scan, 0)) / 100.0 + n_tup_ins + n_tup_upd + n_tup_del from pg_stat_user_tables`,
    );
    const used = Object.fromEntries(
      rows.map(({ name, amount }) => [name, Number(amount)] as const).filter(([, amount]) => amount > 0),
    );
    await note(folder, { file, used, refused: {} });
  } finally {
    await client.end();
  }
}

/**
 * Records which lines of functions led to the errors in a part of the cluster's log.
 * @param log the log of PostgreSQL while the file ran, with observed databases
 */
export async function noteRefusals(file: string, log: string, folder: string): Promise<void> {
  const refused: Record<string, number> = {};
  for (const [, line] of log.matchAll(/PL\/pgSQL function (\w+\.\w+\(.*?\) line \d+) at/g))
    refused[line!] = (refused[line!] ?? 0) + 1;
  await note(folder, { file, used: {}, refused });
}

async function note(folder: string, usage: Usage): Promise<void> {
  const name = `${usage.file.replaceAll(/\W+/g, "_")}-${process.hrtime.bigint()}.json`;
  await writeFile(join(folder, name), JSON.stringify(usage));
}

/**
 * All records of a folder, combined by file.
 * @param forgotten files whose records are removed
 */
export async function readUsage(
  folder: string,
  forgotten: ReadonlySet<string> = new Set(),
): Promise<Usage[]> {
  const files = new Map<string, Usage>();
  for (const name of await readdir(folder)) {
    const { file, ...counts } = JSON.parse(await readFile(join(folder, name), "utf8")) as Usage;
    if (forgotten.has(file)) {
      await rm(join(folder, name));
      continue;
    }
    const known = files.get(file) ?? { file, used: {}, refused: {} };
    for (const what of ["used", "refused"] as const)
      for (const [object, amount] of Object.entries(counts[what]))
        known[what][object] = (known[what][object] ?? 0) + amount;
    files.set(file, known);
  }
  return [...files.values()];
}
