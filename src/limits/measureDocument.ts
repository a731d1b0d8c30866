import {
  type DirectiveNode,
  type DocumentNode,
  type FragmentDefinitionNode,
  Kind,
  type SelectionSetNode,
  visit,
} from "postgraphile/graphql";
import { type QueryLimit, queryLimits } from "../admission/queryLimits.ts";

/** Sizes of a document's largest operation with all fragments expanded. */
export interface Measure {
  depth: number;
  introspectionDepth: number;
  selections: number;
  aliases: number;
  directives: number;
}

const nothing: Readonly<Measure> = {
  depth: 0,
  introspectionDepth: 0,
  selections: 0,
  aliases: 0,
  directives: 0,
};
const isIntrospection = (name: string) => name === "__schema" || name === "__type";

function add(sum: Measure, part: Readonly<Measure>, below: number): void {
  sum.depth = Math.max(sum.depth, part.depth > 0 ? part.depth + below : 0);
  sum.introspectionDepth = Math.max(sum.introspectionDepth, part.introspectionDepth);
  sum.selections += part.selections;
  sum.aliases += part.aliases;
  sum.directives += part.directives;
}

/**
 * Measures every fragment once and multiplies, so that a chain of fragments which spread each other twice, whose expansion has millions of
 * fields, is as cheap as its text. A cycle counts as zero: validation refuses it.
 */
class Measurer {
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;
  readonly #known = new Map<string, Readonly<Measure>>();

  constructor(document: DocumentNode) {
    const fragments = document.definitions.filter(
      (definition) => definition.kind === Kind.FRAGMENT_DEFINITION,
    );
    this.#fragments = new Map(fragments.map((fragment) => [fragment.name.value, fragment]));
  }

  #fragment(name: string): Readonly<Measure> {
    const known = this.#known.get(name);
    if (known) return known;
    this.#known.set(name, nothing);
    const fragment = this.#fragments.get(name);
    const measure = fragment ? this.selectionSet(fragment.selectionSet, fragment.directives) : nothing;
    this.#known.set(name, measure);
    return measure;
  }

  selectionSet(node: SelectionSetNode, directives: readonly DirectiveNode[] = []): Measure {
    const sum: Measure = { ...nothing, directives: directives.length };
    for (const selection of node.selections) {
      sum.selections++;
      sum.directives += selection.directives?.length ?? 0;
      if (selection.kind === Kind.FRAGMENT_SPREAD) {
        add(sum, this.#fragment(selection.name.value), 0);
      } else if (selection.kind === Kind.INLINE_FRAGMENT) {
        add(sum, this.selectionSet(selection.selectionSet), 0);
      } else {
        if (selection.alias) sum.aliases++;
        sum.depth = Math.max(sum.depth, 1);
        if (!selection.selectionSet) continue;
        const inner = this.selectionSet(selection.selectionSet);
        if (isIntrospection(selection.name.value))
          add(sum, { ...inner, depth: 0, introspectionDepth: inner.depth + 1 }, 0);
        else add(sum, inner, 1);
      }
    }
    return sum;
  }
}

/** Whether a fragment refers to itself, which validation refuses, and which code that expands fragments must check first. */
export function hasFragmentCycle(document: DocumentNode): boolean {
  const spreads = new Map<string, Set<string>>();
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.FRAGMENT_DEFINITION) continue;
    const names = new Set<string>();
    visit(definition, { FragmentSpread: ({ name }) => void names.add(name.value) });
    spreads.set(definition.name.value, names);
  }
  // Removes fragments that spread no others until nothing changes; those on a cycle remain.
  for (let before = -1; before !== spreads.size;) {
    before = spreads.size;
    for (const [name, names] of spreads)
      if (![...names].some((other) => spreads.has(other))) spreads.delete(name);
  }
  return spreads.size > 0;
}

/** Measures a document; safe for any document that passed `scanTokens`, valid or not. */
export function measureDocument(document: DocumentNode): Measure {
  const measurer = new Measurer(document);
  const largest: Measure = { ...nothing };
  for (const definition of document.definitions) {
    if (definition.kind !== Kind.OPERATION_DEFINITION) continue;
    const own = measurer.selectionSet(definition.selectionSet, definition.directives);
    for (const key of Object.keys(largest) as (keyof Measure)[])
      largest[key] = Math.max(largest[key], own[key]);
  }
  return largest;
}

/** The first limit that a measured document exceeds. */
export function limitExceeded(measure: Measure): (QueryLimit & keyof Measure) | undefined {
  return (Object.keys(measure) as (keyof Measure)[]).find((key) => measure[key] > queryLimits[key]);
}
