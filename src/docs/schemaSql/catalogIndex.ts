import type { CatalogObject } from "../../database/catalog.ts";

type Kind = CatalogObject["kind"];

/** The objects of a catalog, indexed by the table, type or function that they belong to. */
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

  /** Objects of a kind that belong to the table, type or function of that name. */
  of(kind: Kind, name: string): CatalogObject[] {
    return this.#byOwner.get(`${kind} ${name}`) ?? [];
  }

  /** All objects that belong to it. */
  allOf(name: string): CatalogObject[] {
    return this.#byName.get(name) ?? [];
  }

  /** @param target as written in statements, for example `column app_public.units.id` */
  comment(target: string): string | undefined {
    return this.#comments.get(target);
  }
}

/** The name of an object: for `function app_public.f(uuid)`, the part after the kind. */
export function nameOf({ identity }: CatalogObject): string {
  return identity.replace(/^(?:materialized )?\w+ /, "");
}

/** The schemas, in the order of the output. */
const schemas = ["app_public", "app_hidden", "app_private"];

/** Sorted by schema, then by name. */
export function sortedByName(objects: readonly CatalogObject[]): CatalogObject[] {
  const key = (object: CatalogObject) => {
    const name = nameOf(object);
    return `${schemas.indexOf(name.split(".")[0]!)}${name}`;
  };
  return objects.toSorted((a, b) => (key(a) < key(b) ? -1 : 1));
}
