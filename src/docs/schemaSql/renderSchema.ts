import type { CatalogObject } from "../../database/catalog.ts";
import { CatalogIndex, nameOf, sortedByName } from "./catalogIndex.ts";
import { commentLines } from "./commentLines.ts";
import { readEnumerations } from "./enumerations.ts";
import { functionBlock, functionsOfTables } from "./functionBlocks.ts";
import { grantStatements } from "./grantStatements.ts";
import { format } from "./sqlLayout.ts";
import { rowsBlock, tablesWithRows } from "./rowBlocks.ts";
import { tableBlock } from "./tableBlocks.ts";
import { domainBlock, typeBlock, viewBlock } from "./typeBlocks.ts";

const header = `-- The database as it is, for readers: written by \`npm run schema\` from the catalog of a migrated database and
-- executed by nothing. One block for each table, with the functions of its triggers and its computed columns; then
-- types, views, all other functions, and the rows that migrations and replaceable objects declare.
--
-- The comment on an object stands above or behind it; "--   " continues a line of it. PUBLIC may execute a function
-- only where a grant says so. The owner's privileges, indexes of keys and names of not-null constraints that are the
-- usual ones are omitted, as are the parentheses, casts and aliases that PostgreSQL adds to expressions.`;

/**
 * The whole schema as text for readers. Deterministic: the same catalog results in the same text, and a change of one
 * object in a local diff.
 */
export function renderSchema(objects: readonly CatalogObject[]): string {
  const catalog = new CatalogIndex(objects);
  const enumerations = readEnumerations(catalog, sortedByName(catalog.ofKind("domain")));
  const shown = (object: CatalogObject) => !enumerations.objects.has(object);
  const ofTables = functionsOfTables(catalog);
  const owned = new Set([...ofTables.values()].flat());
  const tables = sortedByName(catalog.ofKind("table").filter(shown)).map((table) => ({
    name: nameOf(table),
    text: tableBlock(table, catalog, ofTables.get(nameOf(table))),
  }));
  const functions = sortedByName(catalog.ofKind("function").filter((object) => !owned.has(object)));
  const blocks = [
    header,
    general(catalog),
    ...tables.flatMap(({ name, text }) => [banner(name), text]),
    banner("Types"),
    ...enumerations.blocks,
    ...sortedByName(catalog.ofKind("domain").filter(shown)).map((domain) => domainBlock(domain, catalog)),
    ...sortedByName(catalog.ofKind("type")).map((type) => typeBlock(type, catalog)),
    ...catalog
      .ofKind("sequence")
      .filter(({ on }) => !on)
      .map(({ definition }) => `${format(definition)};`),
    banner("Views"),
    ...sortedByName(catalog.ofKind("view")).map((view) => viewBlock(view, catalog)),
    banner("Functions"),
    ...functions.map((object) => functionBlock(object, catalog)),
    banner("Rows"),
    ...tablesWithRows(catalog)
      .filter((table) => catalog.of("row", table).some(shown))
      .map((table) => rowsBlock(table, catalog)),
  ];
  return `${blocks.join("\n\n")}\n`;
}

function banner(title: string): string {
  return `${"-".repeat(100)}\n-- ${title}`;
}

/** Extensions, schemas, default privileges. */
function general(catalog: CatalogIndex): string {
  const schemas = catalog
    .ofKind("schema")
    .flatMap((schema) => [
      ...commentLines(catalog.comment(schema.identity)),
      `${schema.definition};`,
      ...grantStatements(catalog.of("grant", nameOf(schema))),
    ]);
  const simple = [...catalog.ofKind("extension"), ...catalog.ofKind("default privileges")];
  return [
    ...simple.filter(({ kind }) => kind === "extension").map(({ definition }) => `${definition};`),
    "",
    ...schemas,
    "",
    ...simple.filter(({ kind }) => kind !== "extension").map(({ definition }) => `${definition};`),
  ].join("\n");
}
