/**
 * The effect of an edit of `current.sql` on the database: objects that the former text created are dropped, with all
 * dependent objects.
 */
import { escapeLiteral, type Client } from "pg";
import { attempt } from "../database/dependencyOrder.ts";
import { createdObject, describesObject } from "./statementForms.ts";
import { splitStatements } from "../database/sqlStatements.ts";

const tableMade = /^create\s+table\s+(?:if\s+not\s+exists\s+)?([\w.]+)/i;
const indexMade = /^create\s+(?:unique\s+)?index\s+(?:if\s+not\s+exists\s+)?(\w+)\s+on\s+([\w]+)\.(\w+)/i;
const tableAltered = /^alter\s+table\s+(?:only\s+)?([\w.]+)/i;

/** The statements that were removed from the text, and what must be dropped. */
export interface Edit {
  /** Tables to be dropped, as written. */
  tables: string[];
  /** Indexes of other tables. */
  indexes: string[];
  /** The unchanged beginning of the text, which the database keeps. */
  kept: string;
}

/** Undefined if a removed statement does not belong to a table. */
export function editOf(text: string, applied: string): Edit | undefined {
  const [now, before] = [splitStatements(text), splitStatements(applied)];
  let same = 0;
  while (same < before.length && now[same]?.text === before[same]!.text) same++;
  const gone = before.slice(same).map((statement) => statement.text);
  const tables = gone.flatMap((sql) => tableMade.exec(sql)?.[1] ?? []);
  const indexes: string[] = [];
  for (const sql of gone) {
    const [, index, schema, table] = indexMade.exec(sql) ?? [];
    if (index && !tables.includes(`${schema}.${table}`)) indexes.push(`${schema}.${index}`);
    const isOfTable = tables.includes(tableAltered.exec(sql)?.[1] ?? "");
    if (!index && !isOfTable && !tableMade.test(sql)) return undefined;
  }
  return {
    tables,
    indexes,
    kept: before
      .slice(0, same)
      .map((statement) => statement.text)
      .join("\n"),
  };
}

/** Objects without a statement. */
export interface DroppedObjects {
  /** Finds the names of tables. */
  tables?: RegExp;
  /** Functions, views and indexes that depended on them, as files write them. */
  others: string[];
}

/**
 * Drops the tables and indexes of removed statements.
 * @returns undefined if something of another table depends on it
 */
export async function dropRemoved(
  owner: Client,
  { tables, indexes }: Edit,
): Promise<DroppedObjects | undefined> {
  if (tables.length + indexes.length === 0) return { others: [] };
  const before = await standing(owner, tables);
  for (const table of tables) if (await attempt(owner, `drop table ${table} cascade;`)) return undefined;
  for (const index of indexes) if (await attempt(owner, `drop index ${index};`)) return undefined;
  const after = await standing(owner, tables);
  const there = new Set(after.map(({ id }) => id));
  const lost = before.filter(({ id }) => !there.has(id));
  if (lost.some(({ name }) => !name)) return undefined;
  return {
    ...(tables.length > 0 && { tables: namesOf(tables) }),
    others: [...new Set(lost.map(({ name }) => name!))],
  };
}

/**
 * Matches table names with their schemas, or alone in quotes, as an argument of a generator. It does not match a word
 * of a sentence.
 */
export function namesOf(tables: readonly string[]): RegExp {
  const alone = tables.map((table) => table.replace(/^\w+\./, ""));
  return new RegExp(
    String.raw`(?<!\w)(?:${tables.map((table) => table.replace(".", "\\.")).join("|")})(?!\w)|'(?:${alone.join("|")})'`,
  );
}

/** Functions, views and indexes, by name. Other dependent objects of other tables have no name of their own. */
async function standing(
  owner: Client,
  tables: readonly string[],
): Promise<{ id: string; name: string | null }[]> {
  const { rows } = await owner.query<{ id: string; name: string | null }>(`
    with ours as (select oid from pg_namespace where nspname in ('app_public', 'app_hidden', 'app_private')),
    others as (select oid from pg_class where relkind in ('r', 'p') and relnamespace in (select oid from ours)
      and oid <> all (array[${tables.map((table) => `coalesce(to_regclass(${escapeLiteral(table)}), 0::oid)`).join(", ")}]::oid[]))
    select 'function ' || p.oid as id, format('%I.%I', p.pronamespace::regnamespace, p.proname) as name
    from pg_proc p where p.pronamespace in (select oid from ours)
    union all
    select 'view ' || c.oid, format('%I.%I', c.relnamespace::regnamespace, c.relname)
    from pg_class c where c.relkind = 'v' and c.relnamespace in (select oid from ours)
    union all
    select 'index ' || c.oid, format('%I.%I', c.relnamespace::regnamespace, c.relname)
    from pg_class c where c.relkind in ('i', 'I') and c.relnamespace in (select oid from ours)
    union all
    select 'policy ' || oid, null from pg_policy where polrelid in (select oid from others)
    union all
    select 'trigger ' || oid, null from pg_trigger where tgrelid in (select oid from others) and not tgisinternal
    union all
    select 'constraint ' || oid, null from pg_constraint where conrelid in (select oid from others)
    union all
    select format('column %s %s', attrelid, attnum), null from pg_attribute
    where attrelid in (select oid from others) and attnum > 0 and not attisdropped`);
  return rows;
}

/** Whether a statement is about a dropped object. For a table, every occurrence of its name counts. */
export function refersToDropped(text: string, { tables, others }: DroppedObjects): boolean {
  if (tables?.test(text)) return true;
  return others.some((name) => createdObject(text)?.name === name || describesObject(text, name));
}
