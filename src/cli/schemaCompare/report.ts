import { catalogKinds, type CatalogObject } from "../../database/catalog.ts";
import { tokens, words } from "./tokens.ts";
import { wordDiff } from "./wordDiff.ts";

export interface CompareOptions {
  /** Whether comments and white space outside of literals are ignored. */
  ignoreSpace?: boolean;
  /** Whether they are also ignored in the strings of functions. */
  ignoreSpaceInLiterals?: boolean;
}

export interface SchemaDifference {
  /** A kind of the catalog, or "order of columns". */
  kind: string;
  /** The object, and how it differs. */
  lines: string[];
}

/** Kinds that are compared exactly: comments are text, rows are values. */
const exact: ReadonlySet<string> = new Set(["comment", "row"]);

/** All differences between two catalogs, in the order of catalogs. */
export function compareCatalogs(
  from: readonly CatalogObject[],
  to: readonly CatalogObject[],
  options: CompareOptions = {},
): SchemaDifference[] {
  const [before, after] = [byIdentity(from), byIdentity(to)];
  const changes = from.flatMap((object): SchemaDifference[] => {
    const other = after.get(object.identity);
    if (!other || object.definition === other.definition) return [];
    const lines = changed(object, other, options);
    return lines.length > 0 ? [{ kind: object.kind, lines: [`~ ${object.identity}`, ...lines] }] : [];
  });
  return [
    ...oneSided(
      "-",
      from.filter(({ identity }) => !after.has(identity)),
    ),
    ...oneSided(
      "+",
      to.filter(({ identity }) => !before.has(identity)),
    ),
    ...changes,
    ...columnOrders(from, to),
  ];
}

/** Objects of one side only; parts of such an object are only counted. */
function oneSided(sign: string, objects: readonly CatalogObject[]): SchemaDifference[] {
  const owners = new Map(objects.filter(({ on }) => !on).map((object) => [nameOf(object), object.identity]));
  const belonging = objects.filter(({ on }) => on && owners.has(on));
  return objects.flatMap((object) => {
    if (belonging.includes(object)) return [];
    const own = object.on ? [] : belonging.filter(({ on }) => on === nameOf(object));
    const lines = [`${sign} ${object.identity}`, ...excerpt(object), ...counted(own)];
    return [{ kind: object.kind, lines }];
  });
}

/** As in `on`: for `function app_public.f(uuid)`, what follows the first word. */
function nameOf({ identity }: CatalogObject): string {
  return identity.replace(/^(?:materialized )?\w+ /, "");
}

function counted(objects: readonly CatalogObject[]): string[] {
  const kinds = catalogKinds.map(
    (kind) => [kind, objects.filter((object) => object.kind === kind).length] as const,
  );
  const parts = kinds.filter(([, count]) => count > 0).map(([kind, count]) => `${kind} (${count})`);
  return parts.length > 0 ? [`    and of it: ${parts.join(", ")}`] : [];
}

function byIdentity(objects: readonly CatalogObject[]): Map<string, CatalogObject> {
  return new Map(objects.map((object) => [object.identity, object]));
}

/** The definition of an object of one side only, unless the identity says it all. */
function excerpt({ identity, definition }: CatalogObject): string[] {
  if (definition === identity) return [];
  const lines = definition.split("\n");
  const most = 12;
  const shown = lines.slice(0, most).map((line) => `    ${line}`);
  return lines.length > most ? [...shown, `    … and ${lines.length - most} more lines`] : shown;
}

function changed(from: CatalogObject, to: CatalogObject, options: CompareOptions): string[] {
  const literals = options.ignoreSpaceInLiterals ?? false;
  const loose = (options.ignoreSpace || literals) && !exact.has(from.kind);
  const pieces = (text: string) => (loose ? tokens(text, { literals }) : words(text));
  return wordDiff(pieces(from.definition), pieces(to.definition), loose ? " " : "").flatMap((line) =>
    line.split("\n").map((part) => `    ${part}`),
  );
}

/** The order of common columns is part of each table's row type. */
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
