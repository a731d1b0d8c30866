import { escapeIdentifier, type ClientBase } from "pg";
import type { Difference } from "./differences.ts";

interface Reference {
  name: string;
  child: string;
  parent: string;
  child_columns: string[];
  parent_columns: string[];
}

/**
 * Removing declared rows, even temporarily, must not delete or change rows of users through `on delete cascade` or
 * `set null`.
 * @returns a message about the first row that others refer to.
 */
export async function rowsInUse(
  client: ClientBase,
  gone: readonly Difference[],
): Promise<string | undefined> {
  const tables = [...new Set(gone.map(({ here }) => here!.on!))];
  if (tables.length === 0) return undefined;
  const { rows: references } = await client.query<Reference>(
    `select k.conname as name, k.conrelid::regclass::text as child, format('%I.%I', n.nspname, c.relname) as parent,
       (select json_agg(a.attname order by p.n) from unnest(k.conkey) with ordinality as p (attnum, n)
        join pg_attribute a on a.attrelid = k.conrelid and a.attnum = p.attnum) as child_columns,
       (select json_agg(a.attname order by p.n) from unnest(k.confkey) with ordinality as p (attnum, n)
        join pg_attribute a on a.attrelid = k.confrelid and a.attnum = p.attnum) as parent_columns
     from pg_constraint k join pg_class c on c.oid = k.confrelid join pg_namespace n on n.oid = c.relnamespace
     where k.contype = 'f' and k.conparentid = 0 and k.confdeltype in ('c', 'n', 'd')
       and format('%I.%I', n.nspname, c.relname) = any ($1)`,
    [tables],
  );
  for (const { identity, here, wanted } of gone)
    for (const { child, parent, child_columns, parent_columns } of references) {
      if (parent !== here!.on || tables.includes(child)) continue;
      const same = child_columns.map(
        (column, index) => `c.${escapeIdentifier(column)} = p.${escapeIdentifier(parent_columns[index]!)}`,
      );
      const where = here!.drop.replace(/^delete from \S+ where /, "");
      const { rows } = await client.query<{ count: number }>(
        `select count(*)::int as count from ${child} c
         join (select * from ${parent} where ${where}) p on ${same.join(" and ")}`,
      );
      if (rows[0]!.count > 0)
        return `The ${identity} ${wanted ? "changes places with another one" : "is declared no longer"}, but ${rows[0]!.count} row(s) of ${child} refer to it: a migration has to change or remove them first.`;
    }
  return undefined;
}
