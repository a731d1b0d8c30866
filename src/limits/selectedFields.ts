import {
  type DocumentNode,
  type FieldNode,
  type FragmentDefinitionNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  isInterfaceType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from "postgraphile/graphql";

/** A field of a selection with its definition in the schema; a merged field has all of its selections. */
export interface SelectedField {
  readonly name: string;
  readonly node: FieldNode;
  readonly definition: GraphQLField<unknown, unknown>;
  readonly selections: readonly SelectionSetNode[];
}

const none: readonly SelectionSetNode[] = [];

/**
 * The fields of selections with fragments expanded and merged, as in execution. Only for documents within the limit on selections, which is
 * counted after expansion.
 */
export class SelectedFields {
  readonly #schema: GraphQLSchema;
  readonly #fragments: ReadonlyMap<string, FragmentDefinitionNode>;

  constructor(schema: GraphQLSchema, document: DocumentNode) {
    this.#schema = schema;
    const fragments = document.definitions.filter((node) => node.kind === Kind.FRAGMENT_DEFINITION);
    this.#fragments = new Map(fragments.map((node) => [node.name.value, node]));
  }

  /** Without `__schema` and other meta fields, which belong to no type. */
  of(type: GraphQLNamedType, selections: readonly SelectionSetNode[]): SelectedField[] {
    const found = new Map<string, SelectedField>();
    for (const selection of selections) this.#collect(type, type, selection, found);
    return [...found.values()];
  }

  #collect(
    own: GraphQLNamedType,
    type: GraphQLNamedType,
    { selections }: SelectionSetNode,
    found: Map<string, SelectedField>,
  ): void {
    for (const selection of selections) {
      if (selection.kind === Kind.FIELD) {
        this.#add(own, type, selection, found);
        continue;
      }
      const fragment =
        selection.kind === Kind.FRAGMENT_SPREAD ? this.#fragments.get(selection.name.value) : selection;
      const condition = fragment?.typeCondition && this.#schema.getType(fragment.typeCondition.name.value);
      if (fragment) this.#collect(own, condition ?? type, fragment.selectionSet, found);
    }
  }

  /** @param own the type of the selection; `type` can be another one in a fragment */
  #add(
    own: GraphQLNamedType,
    type: GraphQLNamedType,
    node: FieldNode,
    found: Map<string, SelectedField>,
  ): void {
    if (!isObjectType(type) && !isInterfaceType(type)) return;
    const definition = type.getFields()[node.name.value];
    if (!definition) return;
    const answered = (node.alias ?? node.name).value;
    // PERF: documents have thousands of fields, most of them of the type of the selection.
    const key = type === own ? answered : `${type.name}.${answered}`;
    const known = found.get(key);
    if (!known) {
      const selections = node.selectionSet ? [node.selectionSet] : none;
      found.set(key, { name: node.name.value, node, definition, selections });
    } else if (node.selectionSet)
      found.set(key, { ...known, selections: [...known.selections, node.selectionSet] });
  }
}
