/** Determines which operations of the API have tests. */
import { readdir, readFile } from "node:fs/promises";
import { join } from "node:path";
import type { Pool } from "pg";
import { camel } from "../../src/schema/codecNames.ts";

/** An operation, as returned by introspection. */
export interface ServedField {
  name: string;
  type: ServedType;
}
interface ServedType {
  name?: string | null;
  ofType?: ServedType | null;
}

/** The introspection query of `uncoveredOperations`. */
export const servedFields = `{
  __schema {
    queryType { fields { ...served } }
    mutationType { fields { ...served } }
    types { fields { ...served } }
  }
}
fragment served on __Field { name type { name ofType { name ofType { name ofType { name } } } } }`;

interface Served {
  queryType: { fields: ServedField[] };
  mutationType: { fields: ServedField[] };
  types: { fields: ServedField[] | null }[];
}

/** All identifiers in the tests, as the API spells them. */
async function namesInTests(): Promise<Set<string>> {
  const folder = join(import.meta.dirname, "..");
  const names = new Set<string>();
  for (const file of await readdir(folder, { recursive: true })) {
    if (!file.endsWith(".test.ts") && !/Matrix|Operations|model/.test(file)) continue;
    if (!file.endsWith(".ts")) continue;
    const text = await readFile(join(folder, file), "utf8");
    for (const [word] of text.matchAll(/[A-Za-z]\w+/g)) names.add(camel(word));
  }
  return names;
}

/** The record type of a table. */
function typeOfTable(table: string): string {
  const singular = table.replace(/ies$/, "y").replace(/(?<=ss|x|ch)es$|s$/, "");
  return camel(`_${singular}`);
}

/**
 * The record types, grouped by equal policies and grants: tables of a group differ only in the names of permissions.
 */
async function kindsOfTables(owner: Pool): Promise<Map<string, string>> {
  const { rows } = await owner.query<{ name: string; kind: string }>(`
    select c.relname as name, concat(
      (select string_agg(concat_ws(' ', p.polname, p.polcmd, (select string_agg(r::regrole::text, ',' order by r) from unnest(p.polroles) r),
          regexp_replace(regexp_replace(concat_ws(' / ', pg_get_expr(p.polqual, p.polrelid), pg_get_expr(p.polwithcheck, p.polrelid)),
            '''[a-z]+\\.[a-z]+''', '''a.permission''', 'g'), '\\y' || c.relname || '\\y', 'this', 'g')), '; ' order by p.polname)
        from pg_policy p where p.polrelid = c.oid),
      (select string_agg(a::text, ',' order by a::text) from unnest(c.relacl) a)) as kind
    from pg_class c where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p')`);
  return new Map(rows.map(({ name, kind }) => [typeOfTable(name), kind]));
}

function recordOf(type: ServedType): string {
  let inner = type;
  while (inner.ofType) inner = inner.ofType;
  return inner.name!.replace(/^Delete(\w+)Payload$/, "$1").replace(/Connection$/, "");
}

/** Generated for every record type; a replacement of a generated operation needs its own test. */
const generated = (record: string) =>
  new RegExp(`^((create|upload|update|delete)?${record}|${record}s?(Connection)?)$`, "i");

/**
 * Generated operations of record types other than the given ones, whose tables have the same policies as one of these,
 * so that tests of the given types cover them.
 * @param types record types on which a test performs all operations
 */
export async function operationsAlike(
  fields: readonly ServedField[],
  types: readonly string[],
  owner: Pool,
): Promise<Set<string>> {
  const kinds = await kindsOfTables(owner);
  const tried = new Set(types.map((type) => kinds.get(type)));
  const alike = fields.filter(({ name, type }) => {
    const record = recordOf(type);
    const kind = kinds.get(record);
    return !types.includes(record) && kind && tried.has(kind) && generated(record).test(name);
  });
  return new Set(alike.map(({ name }) => name));
}

/**
 * Operations without a test. An operation has a test if a test names it; if it is generated for a record type and a
 * test names another operation of that type; or if the table has the same policies as one with tests.
 * @param schema the response to `servedFields`
 */
export async function uncoveredOperations(schema: Served, owner: Pool): Promise<string[]> {
  const named = await namesInTests();
  const kinds = await kindsOfTables(owner);
  const all = [...schema.queryType.fields, ...schema.mutationType.fields];
  const fields = [...all, ...schema.types.flatMap((type) => type.fields ?? [])];
  const records = new Set(fields.filter(({ name }) => named.has(name)).map(({ type }) => recordOf(type)));
  const tested = new Set([...kinds].filter(([record]) => records.has(record)).map(([, kind]) => kind));
  return all
    .filter(({ name, type }) => {
      const record = recordOf(type);
      const kind = kinds.get(record);
      return (
        !named.has(name) &&
        !(generated(record).test(name) && (records.has(record) || (kind && tested.has(kind))))
      );
    })
    .map(({ name }) => name);
}
