import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isInterfaceType,
  isLeafType,
  isListType,
  isObjectType,
  Kind,
  type SelectionSetNode,
} from "postgraphile/graphql";

/**
 * The cost of an operation is the greatest number of objects that its answer can hold:
 *
 *   cost(selection) = Σ over its object fields of size × (1 + cost(their selection))
 *
 * where size is `first` (or `last`) of a list, its default where left out, 100 where there is none; inside a connection,
 * `nodes`, `edges` and other lists take the connection's; a list that cannot be cut counts 10; a single object 1.
 * Scalars are free: their number is bounded by the limit on selections.
 */
const DEFAULT_SIZE = 100;
const UNCUT_SIZE = 10;
/** Lists refuse more than this themselves, with a message that says so. */
const LARGEST_SIZE = 1_000;
/** The whole schema is a large answer, whatever it is asked for. */
const INTROSPECTION_COST = 50_000;

type Variables = Readonly<Record<string, unknown>>;

function argumentSize(field: FieldNode, definition: GraphQLField<unknown, unknown>, variables: Variables) {
  let size: number | undefined;
  for (const argument of definition.args) {
    if (argument.name !== "first" && argument.name !== "last") continue;
    const node = field.arguments?.find((given) => given.name.value === argument.name)?.value;
    let value: unknown = node?.kind === Kind.INT ? Number(node.value) : undefined;
    if (node?.kind === Kind.VARIABLE) value = variables[node.name.value];
    value ??=
      argument.defaultValue ?? (argument.name === "first" && size === undefined ? DEFAULT_SIZE : undefined);
    if (typeof value === "number") size = Math.min(Math.max(value, 0), LARGEST_SIZE);
  }
  return size;
}

const isConnection = (type: GraphQLNamedType) => isObjectType(type) && "pageInfo" in type.getFields();

class Coster {
  readonly #schema: GraphQLSchema;
  readonly #fragments = new Map<string, { type: string; selectionSet: SelectionSetNode }>();
  readonly #known = new Map<string, number>();
  readonly #variables: Variables;

  constructor(schema: GraphQLSchema, document: DocumentNode, variables: Variables) {
    this.#schema = schema;
    this.#variables = variables;
    for (const node of document.definitions)
      if (node.kind === Kind.FRAGMENT_DEFINITION)
        this.#fragments.set(node.name.value, {
          type: node.typeCondition.name.value,
          selectionSet: node.selectionSet,
        });
  }

  /** Fragments are computed once for each page size around them, never expanded. */
  #fragment(name: string, pageSize: number | undefined): number {
    const key = `${name} ${pageSize}`;
    const known = this.#known.get(key);
    if (known !== undefined) return known;
    const fragment = this.#fragments.get(name);
    const type = fragment && this.#schema.getType(fragment.type);
    const cost = fragment && type ? this.selectionSet(type, fragment.selectionSet, pageSize) : 0;
    this.#known.set(key, cost);
    return cost;
  }

  #field(parent: GraphQLNamedType, node: FieldNode, pageSize: number | undefined): number {
    const name = node.name.value;
    if (name === "__schema" || name === "__type") return INTROSPECTION_COST;
    if (!isObjectType(parent) && !isInterfaceType(parent)) return 0;
    const definition = parent.getFields()[name];
    if (!definition || !node.selectionSet) return 0;
    const type = getNamedType(definition.type);
    if (isLeafType(type)) return 0;
    const asked = argumentSize(node, definition, this.#variables);
    if (isConnection(type)) return 1 + this.selectionSet(type, node.selectionSet, asked ?? DEFAULT_SIZE);
    const isList = isListType(getNullableType(definition.type));
    const size = isList ? (asked ?? pageSize ?? UNCUT_SIZE) : 1;
    return size * (1 + this.selectionSet(type, node.selectionSet, undefined));
  }

  /** @param pageSize of the connection that the selection belongs to */
  selectionSet(type: GraphQLNamedType, node: SelectionSetNode, pageSize: number | undefined): number {
    let cost = 0;
    for (const selection of node.selections) {
      if (selection.kind === Kind.FIELD) cost += this.#field(type, selection, pageSize);
      else if (selection.kind === Kind.FRAGMENT_SPREAD)
        cost += this.#fragment(selection.name.value, pageSize);
      else {
        const narrowed = selection.typeCondition && this.#schema.getType(selection.typeCondition.name.value);
        cost += this.selectionSet(narrowed ?? type, selection.selectionSet, pageSize);
      }
    }
    return cost;
  }
}

/**
 * The cost of one operation of a valid document with these variables, before they are coerced.
 * @returns 0 when the document has no such operation, which execution refuses
 */
export function operationCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Variables,
): number {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!operation || !root) return 0;
  const defaults: Record<string, unknown> = {};
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue?.kind === Kind.INT) defaults[variable.name.value] = Number(defaultValue.value);
  const coster = new Coster(schema, document, { ...defaults, ...variables });
  return coster.selectionSet(root, operation.selectionSet, undefined);
}
