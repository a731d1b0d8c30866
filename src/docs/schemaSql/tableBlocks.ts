import type { CatalogObject } from "../../database/catalog.ts";
import { nameOf, type CatalogIndex } from "./catalogIndex.ts";
import { commentLines, withComment } from "./commentLines.ts";
import { functionBlock } from "./functionBlocks.ts";
import { grantStatements } from "./grantStatements.ts";
import { format } from "./sqlLayout.ts";

/** Fixed width, so that a longer name does not change other lines. */
const nameWidth = 24;
const typeWidth = 28;

/** Everything of one table: columns, keys, indexes, row security, grants, triggers, and functions that only it uses. */
export function tableBlock(
  table: CatalogObject,
  catalog: CatalogIndex,
  functions: CatalogObject[] = [],
): string {
  const name = nameOf(table);
  const columns = catalog.of("column", name).map((column) => column.identity.slice(`column ${name}.`.length));
  const parts = [
    [...commentLines(catalog.comment(`table ${name}`)), create(table, catalog)],
    catalog.of("column setting", name).map(({ definition }) => `${format(definition)};`),
    [...catalog.of("sequence", name).map(({ definition }) => `${format(definition)};`)],
    catalog.of("index", name).flatMap((index) => statement(index, catalog)),
    [
      ...catalog.of("row security", name).map(({ definition }) => `${definition};`),
      ...catalog
        .of("policy", name)
        .flatMap((policy) => [...commentLines(catalog.comment(policy.identity)), policyText(policy)]),
    ],
    grantStatements(catalog.of("grant", name), columns),
    catalog.of("trigger", name).flatMap((trigger) => statement(trigger, catalog)),
    ...functions.map((object) => [functionBlock(object, catalog)]),
  ];
  return parts
    .filter((lines) => lines.length > 0)
    .map((lines) => lines.join("\n"))
    .join("\n\n");
}

function create(table: CatalogObject, catalog: CatalogIndex): string {
  const name = nameOf(table);
  const items = [
    ...catalog.of("column", name).map((column) => ({ text: columnText(column), target: column.identity })),
    ...catalog
      .of("constraint", name)
      .toSorted(byKindOfConstraint)
      .map((constraint) => ({
        text: format(`constraint ${constraintName(constraint)} ${constraint.definition}`, { indent: 2 }),
        target: constraint.identity,
      })),
  ];
  const list = items.flatMap(({ text, target }, index) =>
    withComment(`${text}${index < items.length - 1 ? "," : ""}`, catalog.comment(target), 2),
  );
  // The list has a separate place, except in functions that create partitions.
  const [, head, tail] = /^(.+?)(?: \(\)| (?=FOR VALUES|DEFAULT))(.*)$/s.exec(table.definition)!;
  const body = list.length > 0 ? ` (\n${list.join("\n")}\n)` : head!.includes(" partition of ") ? "" : " ()";
  return `${format(head!)}${body}${tail ? ` ${format(tail)}` : ""};`;
}

const constraintKinds = ["PRIMARY", "UNIQUE", "EXCLUDE", "FOREIGN", "CHECK", "NOT"];

function byKindOfConstraint(a: CatalogObject, b: CatalogObject): number {
  const rank = ({ definition }: CatalogObject) => constraintKinds.indexOf(definition.split(" ")[0]!);
  return rank(a) - rank(b);
}

function constraintName({ identity, on }: CatalogObject): string {
  return identity.slice("constraint ".length, -` on ${on}`.length);
}

const parts =
  /^(\S+|"[^"]+") (.+?)(?=$| storage | compression | collate | generated | default | not null)(.*)$/s;

/** `name type not null default …`, with name and type in columns. */
function columnText({ definition }: CatalogObject): string {
  const [, name, type, rest] = parts.exec(definition)!;
  const required = rest!.endsWith(" not null");
  const others = format(required ? rest!.slice(0, -" not null".length) : rest!, {
    indent: 4,
    used: nameWidth + typeWidth + (required ? 13 : 4),
  });
  const attributes = [required ? "not null" : "", others].filter(Boolean).join(" ");
  return attributes === ""
    ? `${name!.padEnd(nameWidth)} ${type}`
    : `${name!.padEnd(nameWidth)} ${type!.padEnd(typeWidth)} ${attributes}`;
}

function policyText({ definition }: CatalogObject): string {
  const [head, ...clauses] = definition.split(/\n {2}(?=using |with check )/);
  return `${[head!, ...clauses.map((clause) => `  ${format(clause, { indent: 2 })}`)].join("\n")};`;
}

function statement({ identity, definition }: CatalogObject, catalog: CatalogIndex): string[] {
  // The default kind of index is not named.
  const text = format(definition.replace(" USING btree (", " ("));
  return [...commentLines(catalog.comment(identity)), `${text};`];
}
