import type { CatalogObject } from "../../database/catalog.ts";
import type { CatalogIndex } from "./catalogIndex.ts";
import { lineLength } from "./sqlLayout.ts";

/**
 * The rows of a table as one insert, if possible one row per line. Columns with the value of their default are
 * omitted.
 */
export function rowsBlock(table: string, catalog: CatalogIndex): string {
  const rows = catalog
    .of("row", table)
    .map(({ definition }) => JSON.parse(definition) as Record<string, unknown>);
  const columns = catalog.of("column", table).flatMap((column) => {
    const name = column.identity.slice(`column ${table}.`.length);
    return name.replace(/^"(.*)"$/, "$1") in rows[0]! ? [{ name, type: typeOf(column) }] : [];
  });
  const tuples = rows.map((row) => {
    const values = columns.map(({ name, type }) => literal(row[name.replace(/^"(.*)"$/, "$1")], type));
    return fill(values, "  (", ")");
  });
  const head = fill(
    columns.map(({ name }) => name),
    `insert into ${table} (`,
    ") values",
  );
  return `${head}\n${tuples.sort().join(",\n")};`;
}

function typeOf({ definition }: CatalogObject): string {
  return /^(?:\w+|"[^"]+") (\S+)/.exec(definition)![1]!;
}

function literal(value: unknown, type: string): string {
  if (value === null || value === undefined) return "null";
  if (typeof value === "number" || typeof value === "boolean") return String(value);
  if (typeof value === "string") return quote(value);
  if (Array.isArray(value) && type.endsWith("[]")) return arrayText(value, type.slice(0, -2));
  return quote(JSON.stringify(value));
}

function arrayText(items: readonly unknown[], type: string): string {
  return items.length === 0
    ? "'{}'"
    : fill(
        items.map((item) => literal(item, type)),
        "array[",
        "]",
        4,
      );
}

const quote = (text: string) => `'${text.replaceAll("'", "''")}'`;

/** Items between two texts, on further lines if necessary; `margin` is the width of the text before them. */
function fill(items: readonly string[], start: string, end: string, margin = 0): string {
  const indent = " ".repeat(margin + start.length - start.trimStart().length + 2);
  const lines = [start];
  items.forEach((item, index) => {
    const text = `${item}${index < items.length - 1 ? "," : end}`;
    const last = lines.at(-1)!;
    const isFresh = last === start || last.trim() === "";
    if (!isFresh && last.length + text.length + 2 > lineLength - margin) lines.push(`${indent}${text}`);
    else lines[lines.length - 1] = `${last}${isFresh ? "" : " "}${text}`;
    // After a multi-line text, the width continues from its last line.
    lines.push(...lines.pop()!.split("\n"));
  });
  return lines.join("\n");
}

/** The tables that have rows, by name. */
export function tablesWithRows(catalog: CatalogIndex): string[] {
  return [...new Set(catalog.ofKind("row").map(({ on }) => on!))];
}
