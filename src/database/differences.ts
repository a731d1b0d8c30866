import { replaceableKinds, type CatalogObject } from "./catalog.ts";

/** An object that differs between two catalogs. */
export interface Difference {
  kind: CatalogObject["kind"];
  identity: string;
  /** Definition in the database. */
  here?: CatalogObject;
  /** Definition in the schema files. */
  wanted?: CatalogObject;
}

/**
 * Differences between a database and its reference, sorted like the catalogs: first missing objects, then unexpected
 * ones.
 */
export function differences(here: readonly CatalogObject[], wanted: readonly CatalogObject[]): Difference[] {
  const present = new Map(here.map((object) => [object.identity, object]));
  const required = new Set(wanted.map(({ identity }) => identity));
  const changed = wanted.flatMap((object): Difference[] => {
    const found = present.get(object.identity);
    if (found?.definition === object.definition) return [];
    const { kind, identity } = object;
    return [{ kind, identity, wanted: object, ...(found && { here: found }) }];
  });
  const extra = here
    .filter(({ identity }) => !required.has(identity))
    .map((object) => ({ kind: object.kind, identity: object.identity, here: object }));
  return [...changed, ...extra];
}

/** Whether it belongs to migrations: such differences are reported, never changed. */
export function isStructure({ kind }: Pick<CatalogObject, "kind">): boolean {
  return !replaceableKinds.has(kind);
}

/** Message for a difference that is left. */
export function driftSentence({ kind, identity, here, wanted }: Difference): string {
  const source = isStructure({ kind }) ? "migrations" : "files of objects";
  if (!here) return `The database lacks ${identity}, which the ${source} create.`;
  if (!wanted) return `The database has ${identity}, which the ${source} do not create.`;
  return `The database has another ${identity} than the ${source} create: ${oneLine(here.definition)} instead of ${oneLine(wanted.definition)}.`;
}

function oneLine(text: string): string {
  const line = text.replaceAll(/\s+/g, " ");
  return line.length > 200 ? `${line.slice(0, 199)}…` : line;
}
