import {
  type DocumentNode,
  type FieldNode,
  type GraphQLField,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  getNullableType,
  getOperationAST,
  isLeafType,
  isListType,
  isObjectType,
  Kind,
  type SelectionSetNode,
  visit,
} from "postgraphile/graphql";
import { type Weighed, Weighing } from "./heaviestPart.ts";
import { type SelectedField, SelectedFields } from "./selectedFields.ts";

/**
 * The cost of an operation: the number of values that its response is expected to contain, weighted by their size:
 *
 *   cost(selection) = Σ of its scalars + Σ over its object fields of size × (1 + cost(their selection))
 *
 * A scalar counts 1, a text 2, JSON 20. The size of a list is its argument `first` (or `last`). If it is omitted, the
 * size is the default of the list, or 10 for a list inside the records of another list, since those are usually short.
 * Inside a connection, `nodes`, `edges` and other lists have the size of the connection. A list without a limit counts
 * 10, a single object 1. A selection on a record that many others belong to, such as their project, is repeated for
 * each of them, so lists in it count with their full size.
 */
const DEFAULT_SIZE = 100;
const SHORT_SIZE = 10;
/** Lists refuse more than this themselves, with a message that explains it. */
const LARGEST_SIZE = 1_000;
const leafCosts: Readonly<Record<string, number>> = { String: 2, URL: 2, JSON: 20 };

type Variables = Readonly<Record<string, unknown>>;

/** The position of a selection. */
interface Place {
  /** Page size of the connection that the selection belongs to. */
  readonly pageSize?: number | undefined;
  /** The assumed length of lists without `first`: the full default, or short inside the records of a list. */
  readonly lists: "full" | "short";
  /** Whether it is inside a list. */
  readonly repeated: boolean;
}

function argumentSize(
  field: FieldNode,
  definition: GraphQLField<unknown, unknown>,
  variables: Variables,
): { size: number; isRequested: boolean } | undefined {
  let found: { size: number; isRequested: boolean } | undefined;
  for (const argument of definition.args) {
    if (argument.name !== "first" && argument.name !== "last") continue;
    const node = field.arguments?.find((given) => given.name.value === argument.name)?.value;
    let value: unknown = node?.kind === Kind.INT ? Number(node.value) : undefined;
    if (node?.kind === Kind.VARIABLE) value = variables[node.name.value];
    const isRequested = typeof value === "number";
    value ??= argument.defaultValue ?? (argument.name === "first" && !found ? DEFAULT_SIZE : undefined);
    if (typeof value === "number") found = { size: Math.min(Math.max(value, 0), LARGEST_SIZE), isRequested };
  }
  return found;
}

const isConnection = (type: GraphQLNamedType) => isObjectType(type) && "pageInfo" in type.getFields();
const isEdge = (type: GraphQLNamedType) =>
  isObjectType(type) && "node" in type.getFields() && /Edge$/.test(type.name);

class Coster {
  readonly #fields: SelectedFields;
  readonly #variables: Variables;

  constructor(fields: SelectedFields, variables: Variables) {
    this.#fields = fields;
    this.#variables = variables;
  }

  selection(type: GraphQLNamedType, selections: readonly SelectionSetNode[], place: Place): Weighed {
    const sum = new Weighing();
    for (const field of this.#fields.of(type, selections)) {
      const named = getNamedType(field.definition.type);
      if (isLeafType(named)) sum.add(leafCosts[named.name] ?? 1);
      else {
        const { total, part } = this.#objects(field, named, place, isEdge(type));
        sum.add(total, field.name, part);
      }
    }
    return sum.sum;
  }

  #objects(field: SelectedField, type: GraphQLNamedType, place: Place, inEdge: boolean): Weighed {
    const { node, definition, selections } = field;
    const given = argumentSize(node, definition, this.#variables);
    const own =
      given && (given.isRequested || place.lists === "full" ? given.size : Math.min(given.size, SHORT_SIZE));
    if (isConnection(type)) {
      const page = { ...place, pageSize: own ?? DEFAULT_SIZE };
      const { total, part } = this.selection(type, selections, page);
      return { total: 1 + total, part };
    }
    const isList = isListType(getNullableType(definition.type));
    const size = isList ? (own ?? place.pageSize ?? SHORT_SIZE) : 1;
    const isSameRecord = inEdge || place.pageSize !== undefined;
    const inside: Place = isList
      ? { lists: "short", repeated: true }
      : { lists: place.repeated && !isSameRecord ? "full" : place.lists, repeated: place.repeated };
    const { total, part } = this.selection(type, selections, inside);
    return { total: size * (1 + total), part };
  }
}

/** Remembered costs of one operation: one for each set of page sizes of its variables. */
const MOST_REMEMBERED = 32;

/** The cost of an operation, and the inputs that it depends on. */
interface Costs {
  /** Variables that specify the length of lists. */
  readonly variables: readonly string[];
  /** By the values of these variables. */
  readonly known: Map<string, Weighed>;
}

/** By document, then by operation. */
const costs = new WeakMap<DocumentNode, Map<string, Costs>>();

/** The variables of a document that a field uses as the length of a list. */
function sizeVariables(document: DocumentNode): string[] {
  const found = new Set<string>();
  visit(document, {
    Argument({ name, value }) {
      if ((name.value === "first" || name.value === "last") && value.kind === Kind.VARIABLE)
        found.add(value.name.value);
    },
  });
  return [...found];
}

function costsOf(document: DocumentNode, name: string): Costs {
  const ofDocument = costs.get(document) ?? new Map<string, Costs>();
  costs.set(document, ofDocument);
  const found = ofDocument.get(name) ?? { variables: sizeVariables(document), known: new Map() };
  ofDocument.set(name, found);
  return found;
}

/**
 * The cost of one operation of a valid document with these variables, before they are coerced; without that of the schema.
 * @returns 0 when the document has no such operation, which execution refuses
 */
export function operationCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Variables,
): Weighed {
  const { variables: sizes, known } = costsOf(document, operationName ?? "");
  const key = sizes
    .map((name) => (typeof variables[name] === "number" ? variables[name] : name in variables ? "x" : ""))
    .join();
  const before = known.get(key);
  if (before) return before;
  const cost = measureCost(schema, document, operationName, variables);
  if (known.size < MOST_REMEMBERED) known.set(key, cost);
  return cost;
}

function measureCost(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Variables,
): Weighed {
  const operation = getOperationAST(document, operationName);
  const root = operation && schema.getRootType(operation.operation);
  if (!operation || !root) return { total: 0, part: [] };
  const defaults: Record<string, unknown> = {};
  for (const { variable, defaultValue } of operation.variableDefinitions ?? [])
    if (defaultValue?.kind === Kind.INT) defaults[variable.name.value] = Number(defaultValue.value);
  const coster = new Coster(new SelectedFields(schema, document), { ...defaults, ...variables });
  return coster.selection(root, [operation.selectionSet], { lists: "full", repeated: false });
}
