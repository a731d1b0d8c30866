import type { Pool } from "pg";

/** Metadata of one constraint or unique index. */
export interface ConstraintMessage {
  /** Text of its `comment on constraint`, or undefined. */
  readonly message: string | undefined;
  /** Column names in key order; empty for a domain constraint. */
  readonly columns: readonly string[];
  /** Name of the referenced table of a foreign key. */
  readonly references: string | undefined;
}

/** By `constraintKey`. */
export type ConstraintMessages = ReadonlyMap<string, ConstraintMessage>;

/** Constraint names are only unique per table or domain, so the key has all three parts. */
export function constraintKey(schema: string, relationOrDomain: string, constraint: string): string {
  return `${schema}.${relationOrDomain}.${constraint}`;
}

/** Smart tags come first in a comment, followed by the message. */
function prose(comment: string | null): string | undefined {
  if (comment === null) return undefined;
  const lines = comment.split("\n");
  const first = lines.findIndex((line) => !line.trim().startsWith("@") && line.trim() !== "");
  return first < 0 ? undefined : lines.slice(first).join(" ").trim();
}

const query = `
  with ours as (
    select oid, nspname as name from pg_namespace where nspname not like 'pg\\_%' and nspname <> 'information_schema'
  ), columns as (
    select con.oid, array_agg(a.attname::text order by k.position) as names
      from pg_constraint con
      cross join unnest(con.conkey) with ordinality k (attnum, position)
      join pg_attribute a on a.attrelid = con.conrelid and a.attnum = k.attnum
     -- A violated not-null constraint is reported by its column, without a constraint name.
     where con.contype <> 'n' and con.connamespace in (select oid from ours)
     group by con.oid
  )
  select n.name as schema, coalesce(c.relname, t.typname) as owner, con.conname as name,
         -- The comment of a foreign key describes the field that leads to the record.
         case when con.contype <> 'f' then d.description end as comment, coalesce(k.names, '{}') as columns,
         r.relname as references
    from pg_constraint con
    join ours n on n.oid = con.connamespace
    left join pg_class c on c.oid = con.conrelid
    left join pg_type t on t.oid = con.contypid
    left join pg_class r on r.oid = con.confrelid
    left join columns k on k.oid = con.oid
    left join pg_description d on d.classoid = 'pg_constraint'::regclass and d.objoid = con.oid and d.objsubid = 0
   where con.contype <> 'n' and coalesce(c.relname, t.typname) is not null
  union all
  select n.name, c.relname, x.relname, obj_description(x.oid, 'pg_class'),
         -- The column of an expression such as lower(name) is the one that it mentions.
         array(select a.attname::text
                 from unnest(i.indkey::smallint[]) with ordinality as k (attnum, position)
                 join pg_attribute a on a.attrelid = i.indrelid and a.attnum > 0 and not a.attisdropped
                  and (a.attnum = k.attnum or k.attnum = 0 and
                    pg_get_indexdef(i.indexrelid, k.position::int, true) ~ ('\\m' || a.attname || '\\M'))
                where k.position <= i.indnkeyatts
                order by k.position),
         null
    from pg_index i
    join pg_class x on x.oid = i.indexrelid
    join pg_class c on c.oid = i.indrelid
    join ours n on n.oid = c.relnamespace
   where i.indisunique
     and not exists (select from pg_constraint con where con.conindid = i.indexrelid and con.contype in ('p', 'u', 'x'))`;

/**
 * Reads comment and columns of every constraint from the catalog, including unique indexes and domains, except
 * not-null constraints. Called once at start, after the migrations: error messages are written beside their
 * constraints.
 */
export async function loadConstraintMessages(pool: Pick<Pool, "query">): Promise<ConstraintMessages> {
  const { rows } = await pool.query<{
    schema: string;
    owner: string;
    name: string;
    comment: string | null;
    columns: string[];
    references: string | null;
  }>(query);
  return new Map(
    rows.map((row) => [
      constraintKey(row.schema, row.owner, row.name),
      { message: prose(row.comment), columns: row.columns, references: row.references ?? undefined },
    ]),
  );
}
