import type { CatalogObject } from "../../database/catalog.ts";

type Kind = CatalogObject["kind"];

/** A catalog, to look up what belongs to what. */
export class CatalogIndex {
  readonly #byKind: Map<Kind, CatalogObject[]>;
  readonly #byName: Map<string, CatalogObject[]>;
  readonly #byOwner: Map<string, CatalogObject[]>;
  readonly #comments = new Map<string, string>();

  constructor(objects: readonly CatalogObject[]) {
    this.#byKind = Map.groupBy(objects, ({ kind }) => kind);
    this.#byOwner = Map.groupBy(objects, ({ kind, on }) => `${kind} ${on}`);
    this.#byName = Map.groupBy(objects, ({ on }) => on ?? "");
    for (const { identity, definition } of this.ofKind("comment"))
      this.#comments.set(identity.slice("comment on ".length), definition);
  }

  ofKind(kind: Kind): CatalogObject[] {
    return this.#byKind.get(kind) ?? [];
  }

  /** What belongs to the table, type or function of that name. */
  of(kind: Kind, name: string): CatalogObject[] {
    return this.#byOwner.get(`${kind} ${name}`) ?? [];
  }

  /** All that belongs to it. */
  allOf(name: string): CatalogObject[] {
    return this.#byName.get(name) ?? [];
  }

  /** @param target as statements name it, for example `column app_public.units.id`. */
  comment(target: string): string | undefined {
    return this.#comments.get(target);
  }
}

/** Of `function app_public.f(uuid)` what follows its kind. */
export function nameOf({ identity }: CatalogObject): string {
  return identity.replace(/^(?:materialized )?\w+ /, "");
}

/** The schemas in the order in which they are shown. */
const schemas = ["app_public", "app_hidden", "app_private"];

/** By schema, then by name. */
export function sortedByName(objects: readonly CatalogObject[]): CatalogObject[] {
  const key = (object: CatalogObject) => {
    const name = nameOf(object);
    return `${schemas.indexOf(name.split(".")[0]!)}${name}`;
  };
  return objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}
