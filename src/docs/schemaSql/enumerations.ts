import type { CatalogObject } from "../../database/catalog.ts";
import { CatalogIndex, nameOf } from "./catalogIndex.ts";
import { commentLines, withComment } from "./comments.ts";
import { tableBlock } from "./tables.ts";
import { domainBlock } from "./types.ts";

/** An enumeration: a domain whose check lists the values, and a table of those with what they mean. */
interface Enumeration {
  domain: CatalogObject;
  description: string;
  values: { value: string; description: string }[];
  /** All objects but the rows, with this enumeration's names and texts replaced. */
  pattern: CatalogObject[];
}

export interface Enumerations {
  /** What is told by the enumerations, and nowhere else. */
  objects: ReadonlySet<CatalogObject>;
  blocks: string[];
}

/** Enumerations are made alike, so what they have in common is told once. Those that are not stay tables and domains. */
export function readEnumerations(catalog: CatalogIndex, domains: readonly CatalogObject[]): Enumerations {
  const found = domains.flatMap((domain) => readEnumeration(domain, catalog) ?? []);
  const alike = Map.groupBy(found, ({ pattern }) => JSON.stringify(pattern));
  const usual = [...alike.values()].toSorted((a, b) => b.length - a.length)[0] ?? [];
  const objects = usual.flatMap(({ domain }) => {
    const name = nameOf(domain);
    return [
      domain,
      ...catalog.objects.filter(
        (object) => object.identity === `table ${name}_values` || object.on === `${name}_values`,
      ),
    ];
  });
  return {
    objects: new Set(objects),
    blocks: usual.length > 0 ? [explanation(usual[0]!.pattern), ...usual.map(block)] : [],
  };
}

function readEnumeration(domain: CatalogObject, catalog: CatalogIndex): Enumeration | undefined {
  const name = nameOf(domain);
  const table = catalog.ofKind("table").find(({ identity }) => identity === `table ${name}_values`);
  const check = catalog.of("constraint", name)[0];
  if (!table || !check) return undefined;
  const rows = catalog
    .of("row", nameOf(table))
    .map(({ definition }) => JSON.parse(definition) as { value: string; description: string });
  const listed = [...check.definition.matchAll(/'((?:[^']|'')*)'::text/g)].map(([, value]) =>
    value!.replaceAll("''", "'"),
  );
  const values = listed.flatMap((value) => rows.filter((row) => row.value === value));
  if (values.length !== rows.length || listed.length !== rows.length) return undefined;
  const description = catalog.comment(domain.identity)?.split("\n\n").at(-1) ?? "";
  const list = `ARRAY[${listed.map((value) => `'${value.replaceAll("'", "''")}'::text`).join(", ")}]`;
  const [schema, local] = name.split(".");
  const typeName = local!
    .split("_")
    .map((word) => word[0]!.toUpperCase() + word.slice(1))
    .join("");
  const replace = (text: string) =>
    text
      .replaceAll(list, "ARRAY[<values>]")
      .replaceAll(description, "<description>")
      .replaceAll(new RegExp(`\\b${local}(?=_values?(?:_|\\b)|\\b)`, "g"), "<name>")
      .replaceAll(`@enumName ${typeName}\n`, "@enumName <Name>\n");
  const own = catalog.objects.filter(
    (object) =>
      object.kind !== "row" &&
      (object === domain || object === table || [name, nameOf(table)].includes(object.on ?? "")),
  );
  const pattern = own.map((object) => ({
    ...object,
    identity: replace(object.identity),
    definition: replace(object.definition),
    create: "",
    drop: "",
    ...(object.on && { on: `${schema}.${replace(object.on.slice(schema!.length + 1))}` }),
  }));
  return { domain, description, values, pattern };
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

function block({ domain, description, values }: Enumeration): string {
  return [
    ...commentLines(description),
    `${domain.definition} check (value in (`,
    ...values.flatMap((row, index) =>
      withComment(`'${row.value}'${index < values.length - 1 ? "," : ""}`, row.description, 2),
    ),
    "));",
  ].join("\n");
}
