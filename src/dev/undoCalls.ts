/**
 * Reverts what the call of a generator created, by running the call again: PostgreSQL reports existing objects as
 * conflicts, with their names, and replaced objects have another version afterwards.
 */
import { escapeIdentifier, type ClientBase, type DatabaseError } from "pg";
import { attempt } from "../database/dependencyOrder.ts";

/** More objects than any generator creates. */
const mostObjects = 200;

/** A statement that calls a generator, such as `select app_private.make_record(…);`. */
export const isCall = (text: string): boolean => /^select\s+app_(?:private|hidden)\.\w+\s*\(/i.test(text);

/**
 * Runs a text in a savepoint. Objects that conflict are removed, repeatedly if necessary.
 * @param removals receives the statements that removed them
 */
export async function attemptReplacing(
  owner: ClientBase,
  sql: string,
  removals: string[] = [],
): Promise<DatabaseError | undefined> {
  for (let tries = 1; ; tries++) {
    const error = await attempt(owner, sql);
    if (!error || tries === mostObjects) return error;
    // The row that it inserts exists already.
    if (error.code === "23505" && /^insert\s/i.test(sql)) return undefined;
    const removal = await removing(owner, error);
    if (!removal || (await attempt(owner, removal))) return error;
    removals.push(removal);
  }
}

/** The statement that removes the policy, trigger, function or row that caused a conflict. */
async function removing(owner: ClientBase, error: DatabaseError): Promise<string | undefined> {
  if (error.code === "23505") return await removingRow(owner, error);
  if (error.code === "42723") {
    // The message has no schema. It is in the generator's statement, which the context of the error contains.
    const name = /SQL statement "create\s+function\s+([\w.]+)/i.exec(error.where ?? "")?.[1];
    return name && `drop function ${name};`;
  }
  if (error.code !== "42710") return undefined;
  const [, kind, name, table] =
    /^(policy|trigger) "(.+)" for (?:table|relation) "(.+)" already exists$/.exec(error.message) ?? [];
  if (!kind) return undefined;
  const catalog = kind === "policy" ? "pg_policy" : "pg_trigger";
  const [of, called] = kind === "policy" ? ["polrelid", "polname"] : ["tgrelid", "tgname"];
  const { rows } = await owner.query<{ table: string }>(
    `select format('%I.%I', n.nspname, c.relname) as table
     from ${catalog} p join pg_class c on c.oid = p.${of} join pg_namespace n on n.oid = c.relnamespace
     where p.${called} = $1 and c.relname = $2`,
    [name, table],
  );
  // Two tables with the same name could not be distinguished.
  return rows.length === 1 ? `drop ${kind} ${escapeIdentifier(name!)} on ${rows[0]!.table};` : undefined;
}

async function removingRow(
  owner: ClientBase,
  { schema, table, constraint, detail = "" }: DatabaseError,
): Promise<string | undefined> {
  const [, value] = /^Key \(.+\)=\((.*)\) already exists\.$/s.exec(detail) ?? [];
  if (value === undefined) return undefined;
  const { rows } = await owner.query<{ sql: string }>(
    `select format('delete from %I.%I where concat_ws('', '', %s) = %L;', n.nspname, c.relname,
       string_agg(format('%I', a.attname), ', ' order by k.n), $4::text) as sql
     from pg_index x join pg_class i on i.oid = x.indexrelid join pg_class c on c.oid = x.indrelid
     join pg_namespace n on n.oid = c.relnamespace
     cross join lateral unnest(x.indkey::int2[]) with ordinality as k (attnum, n)
     join pg_attribute a on a.attrelid = c.oid and a.attnum = k.attnum
     where n.nspname = $1 and c.relname = $2 and i.relname = $3 group by n.nspname, c.relname`,
    [schema, table, constraint, value],
  );
  return rows[0]?.sql;
}

/** Objects that the transaction created or replaced, and statements that remove them. */
const madeQuery = `
  select case when m.kind = 'comment' then format('comment on %s %s is null', regexp_replace(o.type, '^table ', ''), o.identity)
    else format('drop %s %s', o.type, o.identity) end || ';' as undo
  from (
    select 'object' as kind, 'pg_proc'::regclass as classid, oid, 0 as part, xmin from pg_proc
    union all select 'object', 'pg_policy', oid, 0, xmin from pg_policy
    union all select 'object', 'pg_trigger', oid, 0, xmin from pg_trigger where not tgisinternal
    union all select 'object', 'pg_class', oid, 0, xmin from pg_class where relkind = 'v'
    union all select 'comment', classoid, objoid, objsubid, xmin from pg_description
  ) m cross join lateral pg_identify_object(m.classid, m.oid, m.part) o
  where m.xmin::text::bigint >= pg_current_xact_id()::text::bigint % 4294967296
  order by m.kind`;

/**
 * Removes what a call created: policies, triggers, rows, functions, views, comments. Grants are kept, because others
 * may have granted the same; so are objects on which something else depends. Must be called before the transaction
 * creates anything.
 * @returns whether the objects could be determined
 */
export async function undoCall(owner: ClientBase, call: string): Promise<boolean> {
  const removals: string[] = [];
  await owner.query("savepoint call");
  const error = await attemptReplacing(owner, call, removals);
  const { rows } = await owner.query<{ undo: string }>(madeQuery);
  await owner.query("rollback to savepoint call; release savepoint call");
  if (error) return false;
  for (const sql of new Set([...removals, ...rows.map(({ undo }) => undo)])) await attempt(owner, sql);
  return true;
}
