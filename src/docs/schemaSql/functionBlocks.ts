import type { CatalogObject } from "../../database/catalog.ts";
import { nameOf, type CatalogIndex } from "./catalogIndex.ts";
import { commentLines } from "./commentLines.ts";
import { grantStatements } from "./grantStatements.ts";
import { format, lineLength } from "./sqlLayout.ts";

/** A function with its comment above and its grants below. EXECUTE for PUBLIC is written, the lack of it is not. */
export function functionBlock(object: CatalogObject, catalog: CatalogIndex): string {
  const grants = catalog.of("grant", nameOf(object));
  const usual = `revoke execute on ${object.identity} from public`;
  const others = grants.filter(({ identity }) => identity !== usual);
  return [
    ...commentLines(catalog.comment(object.identity)),
    `${declaration(object.definition)};`,
    ...(others.length < grants.length ? [] : [format(`grant execute on ${object.identity} to public;`)]),
    ...grantStatements(others),
  ].join("\n");
}

/** The declaration in the usual order; the body is unchanged. */
function declaration(definition: string): string {
  const start = definition.search(/^AS \$/m);
  if (start < 0) return definition;
  const [signature, ...clauses] = definition
    .slice(0, start)
    .trim()
    .split(
      /\n (?=RETURNS|LANGUAGE|TRANSFORM|WINDOW|IMMUTABLE|STABLE|STRICT|LEAKPROOF|SECURITY|PARALLEL|COST|ROWS|SUPPORT|SET )/,
    );
  const returns = clauses[0]?.startsWith("RETURNS") ? ` ${clauses.shift()}` : "";
  const head = format(`${signature!.replace("CREATE OR REPLACE", "CREATE")}${returns}`);
  const attributes = format(clauses.join(" "));
  const body = definition.slice(start + "AS ".length);
  const line = `${attributes.split("\n").at(-1)} as ${body.split("\n")[0]};`;
  return `${head}\n${attributes}${line.length > lineLength ? "\n" : " "}as ${body}`;
}

/** The function that a trigger executes, with its schema. */
export function executedBy({ definition }: CatalogObject): string {
  return /EXECUTE FUNCTION (.+?)\(/.exec(definition)![1]!;
}

/**
 * The functions that belong to a single table, by table: those that only its triggers execute, and its computed
 * columns.
 */
export function functionsOfTables(catalog: CatalogIndex): Map<string, CatalogObject[]> {
  const tablesOf = Map.groupBy(catalog.ofKind("trigger"), executedBy);
  const tables = new Set(catalog.ofKind("table").map(nameOf));
  const owner = (object: CatalogObject) => {
    const [, name, first] = /^(.+?)\(([^,)]*)/.exec(nameOf(object))!;
    const triggered = new Set(tablesOf.get(name!)?.map(({ on }) => on));
    if (triggered.size === 1) return [...triggered][0];
    return tables.has(first!) && name!.startsWith(`${first}_`) ? first : undefined;
  };
  const owned = Map.groupBy(catalog.ofKind("function"), owner);
  owned.delete(undefined);
  return owned as Map<string, CatalogObject[]>;
}
