/**
 * Tests mutants with the rows of test/harness/rowWorld.ts, each in a transaction that is rolled back. Most take a
 * tenth of a second.
 */
import { isDeepStrictEqual } from "node:util";
import { Client, DatabaseError } from "pg";
import { answersOf, differentSets, maskedOf, startAnswers } from "../harness/rowAnswers.ts";
import { reachOf, readOpenTables, startRows, type Reach } from "../harness/rowReach.ts";
import { calledIn, type Mutant } from "./mutants.ts";

export interface RowTrial {
  /**
   * Whether a viewer reaches other rows than before, which test/schema/access.test.ts detects.
   * @returns the table and command; undefined if nothing changes, or if the mutant is not about a table
   */
  notices(mutant: Mutant): Promise<string | undefined>;
  end(): Promise<void>;
}

/** @param databaseUrl a separate migrated database, as superuser */
export async function startRowTrial(databaseUrl: string): Promise<RowTrial> {
  const client = new Client({ connectionString: databaseUrl });
  // An error before the end of the cluster is the one to report.
  client.on("error", () => {});
  await client.connect();
  const world = await startRows(client);
  const answering = await startAnswers(client, world);
  await client.query("begin");
  const before = new Map([
    ...(await reachOf(client, world)),
    ...(await answersOf(client, world, answering)),
    ...[...(await maskedOf(client, world))].map(([what, told]) => [`${what} in the view`, told] as const),
  ]);
  await client.query("rollback");
  const asking = await tablesAsking(client, [...world.tables.keys()]);

  function difference(after: Reach, where = ""): string | undefined {
    for (const [what, byViewer] of after)
      if (!isDeepStrictEqual(byViewer, before.get(`${what}${where}`))) return `${what}${where}`;
    return undefined;
  }

  /** Queries about a function: rows of tables whose policies call it, and results of functions that call it. */
  function* questions(about: string): Iterable<() => Promise<string | undefined>> {
    for (const tables of portions(some(asking.get(about) ?? [])))
      yield async () => difference(await reachOf(client, world, tables));
    for (const functions of portions(some(answering.filter(({ uses }) => uses.has(about)))))
      yield async () => difference(await answersOf(client, world, functions));
    if (sets.test(about)) {
      yield async () => (await differentSets(client, world)).different[0];
      yield async () => difference(await maskedOf(client, world), " in the view");
    }
  }

  /** Parts of a table that are the same for every viewer. */
  async function readsLess(table: string, sql: string): Promise<string | undefined> {
    const counts = async () => {
      const found = [];
      for (const role of ["plat_user", "plat_anonymous"])
        found.push((await readOpenTables(client, world, role, [table])).get(table));
      return found;
    };
    await client.query("begin");
    try {
      const usual = await counts();
      await client.query(sql);
      return isDeepStrictEqual(await counts(), usual) ? undefined : `${table} whole`;
    } catch (error) {
      if ((error as { code?: string }).code === "42501") return `${table} whole`;
      throw error;
    } finally {
      await client.query("rollback");
    }
  }

  return {
    async notices({ about, sql, kind }) {
      const masks =
        kind === "grant" && (about.startsWith("app_hidden.masked_") || sql.endsWith(" plat_masker"));
      if (kind !== "function" && !masks && !world.tables.has(about)) return await readsLess(about, sql);
      const asked =
        kind === "function"
          ? questions(about)
          : masks
            ? [async () => difference(await maskedOf(client, world), " in the view")]
            : [async () => difference(await reachOf(client, world, [about]))];
      for (const ask of asked) {
        await client.query("begin");
        try {
          await client.query(sql);
          const found = await ask().catch(failure);
          if (found) return found;
        } finally {
          await client.query("rollback");
        }
      }
      return undefined;
    },
    end: () => client.end(),
  };
}

/** A function with unusable results is detected as well. @throws errors that are not refusals of the database */
function failure(error: unknown): string {
  if (error instanceof DatabaseError) return error.message;
  throw error;
}

/** Functions whose results test/schema/access.test.ts compares. */
const sets =
  /^app_hidden\.(project_can|(find_)?(\w+_where|viewer_organizations|viewer_(own_)?projects)|handed_access)$|^app_private\.access_of$/;

/** PERF: rules of all policies are tested with a few tables of each area. */
const most = 16;
const some = <T>(all: T[]): T[] => all.filter((_one, index) => index % Math.ceil(all.length / most) === 0);
const portions = <T>(all: T[]): T[][] =>
  Array.from({ length: Math.ceil(all.length / 8) }, (_, index) => all.slice(index * 8, index * 8 + 8));

/** Tables by function whose policies call it, directly or indirectly. */
async function tablesAsking(client: Client, tables: string[]): Promise<Map<string, string[]>> {
  const { rows: routines } = await client.query<{ name: string; source: string }>(
    `select n.nspname || '.' || p.proname as name, string_agg(p.prosrc, ' ') as source
     from pg_proc p join pg_namespace n on n.oid = p.pronamespace where n.nspname like 'app\\_%' group by 1`,
  );
  const calls = new Map(routines.map(({ name, source }) => [name, calledIn(source)]));
  const { rows: policies } = await client.query<{ table: string; source: string }>(
    `select polrelid::regclass::text as table, string_agg(concat(pg_get_expr(polqual, polrelid), pg_get_expr(polwithcheck, polrelid)), ' ') as source
     from pg_policy where polrelid = any ($1::regclass[]) group by 1`,
    [tables],
  );
  const asking = new Map<string, string[]>();
  for (const { table, source } of policies) {
    const asked = calledIn(source);
    for (const name of asked) {
      asking.set(name, [...(asking.get(name) ?? []), table]);
      for (const further of calls.get(name) ?? []) asked.add(further);
    }
  }
  return asking;
}
