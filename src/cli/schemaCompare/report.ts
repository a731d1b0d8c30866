import { catalogKinds, type CatalogObject } from "../../database/catalog.ts";
import { tokens, words } from "./tokens.ts";
import { wordDiff } from "./wordDiff.ts";

export interface CompareOptions {
  /** Whether comments and space outside of literals count for nothing. */
  ignoreSpace?: boolean;
}

export interface SchemaDifference {
  /** A kind of the catalog, or "order of columns". */
  kind: string;
  /** What it is, and how it differs. */
  lines: string[];
}

/** Kinds of which every character counts: comments are text, rows are values. */
const exact: ReadonlySet<string> = new Set(["comment", "row"]);

/** Everything that two catalogs do not have alike, in the order of catalogs. */
export function compareCatalogs(
  from: readonly CatalogObject[],
  to: readonly CatalogObject[],
  { ignoreSpace = false }: CompareOptions = {},
): SchemaDifference[] {
  const [before, after] = [byIdentity(from), byIdentity(to)];
  const found: SchemaDifference[] = [];
  for (const object of from) {
    const other = after.get(object.identity);
    if (!other) found.push({ kind: object.kind, lines: [`- ${object.identity}`, ...excerpt(object)] });
    else if (object.definition !== other.definition) {
      const lines = changed(object, other, ignoreSpace);
      if (lines.length > 0) found.push({ kind: object.kind, lines: [`~ ${object.identity}`, ...lines] });
    }
  }
  for (const object of to)
    if (!before.has(object.identity))
      found.push({ kind: object.kind, lines: [`+ ${object.identity}`, ...excerpt(object)] });
  return [...found, ...columnOrders(from, to)];
}

function byIdentity(objects: readonly CatalogObject[]): Map<string, CatalogObject> {
  return new Map(objects.map((object) => [object.identity, object]));
}

/** The definition of what only one side has, unless the identity says it all. */
function excerpt({ identity, definition }: CatalogObject): string[] {
  if (definition === identity) return [];
  const lines = definition.split("\n");
  const most = 12;
  const shown = lines.slice(0, most).map((line) => `    ${line}`);
  return lines.length > most ? [...shown, `    … and ${lines.length - most} more lines`] : shown;
}

function changed(from: CatalogObject, to: CatalogObject, ignoreSpace: boolean): string[] {
  const loose = ignoreSpace && !exact.has(from.kind);
  const pieces = loose ? tokens : words;
  return wordDiff(pieces(from.definition), pieces(to.definition), loose ? " " : "").flatMap((line) =>
    line.split("\n").map((part) => `    ${part}`),
  );
}

/** The order of the columns that both have is a part of each table's row type. */
function columnOrders(from: readonly CatalogObject[], to: readonly CatalogObject[]): SchemaDifference[] {
  const [before, after] = [columnsByTable(from), columnsByTable(to)];
  return [...before].flatMap(([table, columns]) => {
    const others = after.get(table) ?? [];
    const common = columns.filter((column) => others.includes(column));
    const sorted = others.filter((column) => columns.includes(column));
    if (common.join() === sorted.join()) return [];
    const lines = [`~ columns of ${table}`, `    from ${common.join(", ")}`, `    to   ${sorted.join(", ")}`];
    return [{ kind: "order of columns", lines }];
  });
}

function columnsByTable(objects: readonly CatalogObject[]): Map<string, string[]> {
  const tables = new Map<string, string[]>();
  for (const { kind, identity, on } of objects)
    if (kind === "column")
      tables.set(on!, [...(tables.get(on!) ?? []), identity.slice(`column ${on}.`.length)]);
  return tables;
}

/** Differences for a terminal: one block for each kind, its count above. */
export function printDifferences(differences: readonly SchemaDifference[]): string {
  const blocks = [...catalogKinds, "order of columns"].flatMap((kind) => {
    const of = differences.filter((difference) => difference.kind === kind);
    if (of.length === 0) return [];
    const count = (sign: string) => of.filter(({ lines }) => lines[0]!.startsWith(sign)).length;
    const heading = `${kind}: ${count("-")} only before, ${count("+")} only after, ${count("~")} changed`;
    return [`## ${heading}\n\n${of.flatMap(({ lines }) => lines).join("\n")}\n`];
  });
  return blocks.join("\n");
}
