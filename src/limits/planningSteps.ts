import {
  type DocumentNode,
  type GraphQLNamedType,
  type GraphQLSchema,
  getNamedType,
  isAbstractType,
  isLeafType,
  isObjectType,
  Kind,
  type OperationDefinitionNode,
  OperationTypeNode,
  print,
  type SelectionSetNode,
} from "postgraphile/graphql";
import { type Weighed, Weighing } from "./heaviestPart.ts";
import { SelectedFields } from "./selectedFields.ts";

/**
 * Number of steps in the plan of a selection, which determines the time and memory of planning. Measured over random
 * documents of the schema: 1.06 steps for each scalar, 11.5 for a single record, 11.9 for a list, 18.5 for a
 * connection, 12 for the operation, 8.5 for each member type of a union, and 15 to 19 for a mutation.
 */
const steps = {
  operation: 12,
  scalar: 1,
  record: 12,
  connection: 19,
  memberOfUnion: 9,
  mutation: 20,
} as const;

/** Measures of the plan of one operation. */
export interface PlanMeasure {
  readonly steps: Weighed;
  /**
   * Number of times that the answer can repeat the same field of the same record under other aliases, all levels
   * multiplied: it is read once, however often it is selected.
   */
  readonly copies: number;
  /** Number of queries of the schema, including fragments that are not used. */
  readonly introspections: number;
}

const isIntrospection = (name: string) => name === "__schema" || name === "__type";

/**
 * Number of queries of the schema in a selection, without the fragments that it spreads. PERF: visiting all nodes
 * takes several times as long.
 */
export function introspectionsIn({ selections }: SelectionSetNode): number {
  let count = 0;
  for (const selection of selections) {
    if (selection.kind === Kind.FRAGMENT_SPREAD) continue;
    if (selection.kind === Kind.FIELD && isIntrospection(selection.name.value)) count += 1;
    if (selection.selectionSet) count += introspectionsIn(selection.selectionSet);
  }
  return count;
}

function countIntrospections(document: DocumentNode, operation: OperationDefinitionNode): number {
  let count = introspectionsIn(operation.selectionSet);
  for (const definition of document.definitions)
    if (definition.kind === Kind.FRAGMENT_DEFINITION) count += introspectionsIn(definition.selectionSet);
  return count;
}

/** Measures one operation of a document that is within the limit on selections; unknown fields count as zero. */
export function planningSteps(
  schema: GraphQLSchema,
  document: DocumentNode,
  operation: OperationDefinitionNode,
): PlanMeasure {
  const root = schema.getRootType(operation.operation);
  const fields = new SelectedFields(schema, document);
  const isMutation = operation.operation === OperationTypeNode.MUTATION;

  function selection(
    type: GraphQLNamedType,
    selections: readonly SelectionSetNode[],
    isRoot = false,
  ): Omit<PlanMeasure, "introspections"> {
    const sum = new Weighing();
    const same = new Map<string, { times: number; copies: number }>();
    for (const { name, node, definition, selections: inner } of fields.of(type, selections)) {
      // PERF: most fields have no arguments, so that no name is built for them.
      const key = node.arguments?.length ? `${name} ${node.arguments.map(print).join()}` : name;
      let alike = same.get(key);
      if (!alike) same.set(key, (alike = { times: 0, copies: 1 }));
      alike.times += 1;
      const named = getNamedType(definition.type);
      if (isLeafType(named)) {
        sum.add(steps.scalar);
        continue;
      }
      const below = selection(named, inner);
      alike.copies = Math.max(alike.copies, below.copies);
      const isConnection = isObjectType(named) && "pageInfo" in named.getFields();
      let own: number = isConnection ? steps.connection : steps.record;
      if (isRoot && isMutation) own = steps.mutation;
      if (isAbstractType(named)) own += steps.memberOfUnion * schema.getPossibleTypes(named).length;
      sum.add(own + below.steps.total, name, below.steps.part);
    }
    let copies = 1;
    for (const { times, copies: below } of same.values()) copies = Math.max(copies, times * below);
    return { steps: sum.sum, copies };
  }

  if (!root) return { steps: { total: 0, part: [] }, copies: 1, introspections: 0 };
  const { steps: inside, copies } = selection(root, [operation.selectionSet], true);
  return {
    steps: { ...inside, total: inside.total + steps.operation },
    copies,
    introspections: countIntrospections(document, operation),
  };
}
