/** Reads the objects of a database from the catalog of PostgreSQL, as statements that create and drop them. */
import type { ClientBase } from "pg";
import { commentQueries } from "./catalogComments.ts";
import { flattenLogic } from "./catalogExpressions.ts";
import { privilegeQueries } from "./catalogPrivileges.ts";
import { routineQueries } from "./catalogRoutines.ts";
import { readRows } from "./catalogRows.ts";
import { unknownObjectsQuery } from "./catalogSql.ts";
import { structureQueries } from "./catalogStructure.ts";
import { typeQueries } from "./catalogTypes.ts";

/** Kinds of catalog objects, in the order in which most objects of an empty database can be created. */
export const catalogKinds = [
  "extension",
  "schema",
  "default privileges",
  "domain",
  "type",
  "sequence",
  "table",
  "function",
  "column",
  "column setting",
  "constraint",
  "index",
  "row security",
  "view",
  "row",
  "policy",
  "trigger",
  "grant",
  "comment",
] as const;

export interface CatalogObject {
  kind: (typeof catalogKinds)[number];
  /** Unique, for example `policy team_update on app_public.units` or `function app_public.f(uuid, text)`. */
  identity: string;
  /** The table, view, type or function it belongs to, as the identity of that object names it. */
  on?: string;
  /** Canonical: two objects are equal exactly when their definitions are. */
  definition: string;
  /** SQL that creates it, without the final semicolon; for functions and views, it also replaces it. */
  create: string;
  /** SQL that drops it, without the final semicolon. */
  drop: string;
}

/** The kinds that files of replaceable objects declare; all others are structure and belong to migrations. */
export const replaceableKinds: ReadonlySet<CatalogObject["kind"]> = new Set([
  "view",
  "function",
  "column setting",
  "policy",
  "trigger",
  "grant",
  "comment",
  "row",
]);

/** Settings while the catalog is read, so that every name is qualified regardless of the session. */
const pinned = {
  search_path: "''",
  quote_all_identifiers: "off",
  timezone: "'UTC'",
  datestyle: "'ISO, YMD'",
  intervalstyle: "postgres",
  bytea_output: "hex",
  extra_float_digits: "1",
  xmloption: "content",
  row_security: "on",
};

/**
 * Everything in app_public, app_hidden and app_private, sorted by kind and name, independent of creation order.
 * Columns are in table order. Objects of extensions, the owner's own privileges and whatever a partition inherits
 * from its table are omitted.
 * @param client the owner's connection; reading takes part in an open transaction.
 * @param options rowsOf: tables whose rows are read as well, qualified, for example `app_private.error_codes`.
 * @param options unknown: called with objects of a kind that this reader does not support, such as a rule.
 * @throws Error if there is such an object and no callback.
 */
export async function readCatalog(
  client: ClientBase,
  { rowsOf = [], unknown }: { rowsOf?: readonly string[]; unknown?: (names: string[]) => void } = {},
): Promise<CatalogObject[]> {
  return withPinnedSettings(client, async () => {
    const { rows: unread } = await client.query<{ name: string }>(unknownObjectsQuery);
    const names = unread.map(({ name }) => name);
    if (names.length > 0 && !unknown)
      throw new Error(`The schema holds objects that the catalog reader does not know: ${names.join(", ")}.`);
    if (names.length > 0) unknown!(names);
    const objects: CatalogObject[] = [];
    const queries = [
      ...typeQueries,
      ...structureQueries,
      ...routineQueries,
      ...privilegeQueries,
      ...commentQueries,
    ];
    for (const query of queries) objects.push(...(await client.query<CatalogObject>(query)).rows);
    objects.push(...(await readRows(client, rowsOf)));
    return objects.map(canonical).sort(compare);
  });
}

/** The kinds whose definitions are text, not expressions. */
const verbatim: ReadonlySet<string> = new Set(["function", "comment", "row", "grant"]);

function canonical({ on, ...object }: CatalogObject): CatalogObject {
  const definition = verbatim.has(object.kind) ? object.definition : flattenLogic(object.definition);
  return { ...object, definition, ...(on && { on }) };
}

const rank = new Map<string, number>(catalogKinds.map((kind, index) => [kind, index]));

/** Columns keep the order in which they were read, which is table order. */
function compare(a: CatalogObject, b: CatalogObject): number {
  if (a.kind !== b.kind) return rank.get(a.kind)! - rank.get(b.kind)!;
  const [left, right] = a.kind === "column" ? [a.on!, b.on!] : [a.identity, b.identity];
  return left < right ? -1 : left > right ? 1 : 0;
}

/** Rolled back, to a savepoint if the caller has a transaction, which restores the settings. */
async function withPinnedSettings<T>(client: ClientBase, work: () => Promise<T>): Promise<T> {
  const nested = await beginOrSave(client);
  try {
    const settings = Object.entries(pinned).map(([name, value]) => `set local ${name} = ${value}`);
    await client.query(settings.join("; "));
    return await work();
  } finally {
    await client.query(
      nested ? "rollback to savepoint read_catalog; release savepoint read_catalog" : "rollback",
    );
  }
}

/** Whether the caller has a transaction. */
async function beginOrSave(client: ClientBase): Promise<boolean> {
  try {
    await client.query("savepoint read_catalog");
    return true;
  } catch (error) {
    const noTransaction = "25P01";
    if ((error as { code?: string }).code !== noTransaction) throw error;
    await client.query("begin isolation level repeatable read, read only");
    return false;
  }
}
