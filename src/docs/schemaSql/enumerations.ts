import type { CatalogObject } from "../../database/catalog.ts";
import { CatalogIndex, nameOf } from "./catalogIndex.ts";
import { commentLines, withComment } from "./commentLines.ts";
import { tableBlock } from "./tableBlocks.ts";
import { domainBlock } from "./typeBlocks.ts";

interface Value {
  value: string;
  description: string;
}

/** An enumeration: a domain whose check lists the values, and a table of the values with their descriptions. */
interface Enumeration {
  description: string;
  values: Value[];
  /** The domain, the table and their objects, without the rows. */
  own: CatalogObject[];
  rows: CatalogObject[];
  /** The same, with placeholders for the names and texts of this enumeration. */
  pattern: CatalogObject[];
}

export interface Enumerations {
  /** Objects that are only written as part of the enumerations. */
  objects: ReadonlySet<CatalogObject>;
  blocks: string[];
}

/**
 * Enumerations have the same structure, so it is written once. Those with another structure are written as tables and
 * domains.
 */
export function readEnumerations(catalog: CatalogIndex, domains: readonly CatalogObject[]): Enumerations {
  const tables = new Map(catalog.ofKind("table").map((table) => [nameOf(table), table]));
  const found = domains.flatMap(
    (domain) => readEnumeration(domain, tables.get(`${nameOf(domain)}_values`), catalog) ?? [],
  );
  const alike = Map.groupBy(found, ({ pattern }) => JSON.stringify(pattern));
  const usual = [...alike.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
  const objects = usual.flatMap(({ own, rows }) => [...own, ...rows]);
  return {
    objects: new Set(objects),
    blocks: usual.length > 0 ? [explanation(usual[0]!.pattern), ...usual.map(block)] : [],
  };
}

function readEnumeration(
  domain: CatalogObject,
  table: CatalogObject | undefined,
  catalog: CatalogIndex,
): Enumeration | undefined {
  const [name, check] = [nameOf(domain), catalog.of("constraint", nameOf(domain))[0]];
  const description = catalog.comment(domain.identity)?.split("\n\n").at(-1);
  if (!table || !check || !description) return undefined;
  const rows = catalog.of("row", nameOf(table));
  const described = rows.map(({ definition }) => JSON.parse(definition) as Value);
  const quoted = [...check.definition.matchAll(/'(?:[^']|'')*'::text/g)].map(([text]) => text);
  const listed = quoted.map((text) => text.slice(1, -"'::text".length).replaceAll("''", "'"));
  const values = listed.flatMap((value) => described.filter((row) => row.value === value));
  if (values.length !== rows.length || listed.length !== rows.length) return undefined;
  const own = [domain, table, ...catalog.allOf(name), ...catalog.allOf(nameOf(table))].filter(
    ({ kind }) => kind !== "row",
  );
  const placeholders = (text: string) =>
    withPlaceholders(text.replaceAll(`[${quoted.join(", ")}]`, "[<values>]"), name, description);
  const pattern = own.map((object) => ({
    kind: object.kind,
    identity: placeholders(object.identity),
    definition: placeholders(object.definition),
    create: "",
    drop: "",
    ...(object.on && { on: placeholders(object.on) }),
  }));
  const [tag = ""] = catalog.comment(table.identity)?.match(notAvailable) ?? [];
  return { description: tag ? `${tag}\n${description}` : description, values, own, rows, pattern };
}

/** The tag of values that are currently refused; it is not part of the common structure. */
const notAvailable = /@notAvailable .*\n/g;

/** Replaces `app_public.lead_status` with `app_public.<name>`, and likewise in derived names. */
function withPlaceholders(text: string, name: string, description: string): string {
  const local = name.split(".")[1]!;
  const typeName = local.split("_").map((word) => word[0]!.toUpperCase() + word.slice(1));
  return text
    .replaceAll(description, "<description>")
    .replaceAll(new RegExp(`\\b${local}(?=_values?(?:_|\\b)|\\b)`, "g"), "<name>")
    .replaceAll(`@enumName ${typeName.join("")}\n`, "@enumName <Name>\n")
    .replaceAll(notAvailable, "");
}

function explanation(pattern: readonly CatalogObject[]): string {
  const catalog = new CatalogIndex(pattern);
  const [domain, table] = [catalog.ofKind("domain")[0]!, catalog.ofKind("table")[0]!];
  const lines = `${domainBlock(domain, catalog)}\n\n${tableBlock(table, catalog)}`.split("\n");
  return [
    "-- Enumerations. Each of these domains stands for the following, with its values in the order of the check as rows:",
    "--",
    ...lines.map((line) => `--   ${line}`.trimEnd()),
  ].join("\n");
}

function block({ own: [domain], description, values }: Enumeration): string {
  return [
    ...commentLines(description),
    `${domain!.definition} check (value in (`,
    ...values.flatMap((row, index) =>
      withComment(`'${row.value}'${index < values.length - 1 ? "," : ""}`, row.description, 2),
    ),
    "));",
  ].join("\n");
}
