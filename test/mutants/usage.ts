/** Which test files are about which tables and functions, as the statistics of their databases say. */
import { readdir, readFile, writeFile } from "node:fs/promises";
import { join, relative, resolve } from "node:path";
import { Client } from "pg";

const repository = resolve(import.meta.dirname, "../..");

/** How often a test file called each function and touched each table, with their schemas. */
export interface Usage {
  /** Relative to the repository. */
  file: string;
  used: Record<string, number>;
}

/** Notes what was used in the database of the running test file. Its connections have ended: they count when they do. */
export async function noteUsage(ownerUrl: string, folder: string): Promise<void> {
  const path = (globalThis as { expect?: typeof import("@jest/globals").expect }).expect?.getState().testPath;
  if (!path) return;
  const file = relative(repository, path);
  const client = new Client({ connectionString: ownerUrl });
  try {
    await client.connect();
  } catch {
    // It is gone already.
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
    const note = `${file.replaceAll(/\W+/g, "_")}-${process.hrtime.bigint()}.json`;
    await writeFile(join(folder, note), JSON.stringify({ file, used } satisfies Usage));
  } finally {
    await client.end();
  }
}

/** All notes of a folder, those of one file together. */
export async function readUsage(folder: string): Promise<Usage[]> {
  const files = new Map<string, Record<string, number>>();
  for (const name of await readdir(folder)) {
    const { file, used } = JSON.parse(await readFile(join(folder, name), "utf8")) as Usage;
    const known = files.get(file) ?? {};
    for (const [object, amount] of Object.entries(used)) known[object] = (known[object] ?? 0) + amount;
    files.set(file, known);
  }
  return [...files].map(([file, used]) => ({ file, used }));
}
