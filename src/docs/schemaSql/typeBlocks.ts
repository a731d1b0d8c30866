import type { CatalogObject } from "../../database/catalog.ts";
import { nameOf, type CatalogIndex } from "./catalogIndex.ts";
import { commentLines, withComment } from "./commentLines.ts";
import { grantStatements } from "./grantStatements.ts";
import { format } from "./sqlLayout.ts";

/** A domain with its constraints. */
export function domainBlock(domain: CatalogObject, catalog: CatalogIndex): string {
  const name = nameOf(domain);
  const constraints = catalog.of("constraint", name).flatMap((constraint) => {
    const constraintName = constraint.identity.slice("constraint ".length, -` on domain ${name}`.length);
    const text = format(`constraint ${constraintName} ${constraint.definition}`, { indent: 2 });
    return withComment(text, catalog.comment(constraint.identity), 2);
  });
  return [
    ...commentLines(catalog.comment(domain.identity)),
    `${[format(domain.definition), ...constraints].join("\n")};`,
    ...grantStatements(catalog.of("grant", name)),
  ].join("\n");
}

/** A composite type with the comments on its attributes, or another type. */
export function typeBlock(type: CatalogObject, catalog: CatalogIndex): string {
  const name = nameOf(type);
  const lines = type.definition.split("\n").flatMap((line) => {
    const attribute = /^ {2}(\w+|"[^"]+") /.exec(line)?.[1];
    return attribute ? withComment(line.trim(), catalog.comment(`column ${name}.${attribute}`), 2) : [line];
  });
  return [
    ...commentLines(catalog.comment(type.identity)),
    `${lines.join("\n")};`,
    ...grantStatements(catalog.of("grant", name)),
  ].join("\n");
}

/** A view with its objects. */
export function viewBlock(view: CatalogObject, catalog: CatalogIndex): string {
  const name = nameOf(view);
  const comments = catalog.of("comment", name).flatMap(({ identity, definition }) => {
    const [, column] = identity.split(`comment on column ${name}.`);
    return column ? commentLines(`Column ${column}: ${definition}`) : [];
  });
  const others = [...catalog.of("index", name), ...catalog.of("trigger", name)];
  return [
    ...commentLines(catalog.comment(view.identity)),
    `${format(view.definition.replace("create or replace", "create"))};`,
    ...comments,
    ...others.map(({ definition }) => `${format(definition)};`),
    ...grantStatements(catalog.of("grant", name)),
  ].join("\n");
}
