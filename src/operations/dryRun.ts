/**
 * Dry runs: with `dryRun: true` in its input, a mutation is executed in a transaction that is rolled back, and the
 * response lists its effects in `extensions.effects`. See docs/dry-runs.md, and src/database/dryRunTransaction.ts for the
 * transaction.
 */
import {
  getOperationAST,
  isInputObjectType,
  getNullableType,
  Kind,
  valueFromASTUntyped,
  type DocumentNode,
  type FieldNode,
  type GraphQLSchema,
  type SelectionSetNode,
} from "postgraphile/graphql";
import { workOf } from "../admission/operationWork.ts";
import { CodedError } from "../base/errors.ts";

/** The input field of every mutation. */
export const dryRunField = {
  name: "dryRun",
  description:
    "If true, the mutation is executed and rolled back; `extensions.effects` of the response lists what it would have done.",
} as const;

/** The same for mutations without a dry run. */
export const noDryRun =
  "Must not be true: the operation has no dry run, because it acts outside the database or counts attempts before anything is stored.";

/** Transforms of arguments without effects outside the transaction. */
const inert: ReadonlySet<string> = new Set([
  "freshSecret",
  "hideCredentials",
  "publicAddress",
  "requestingDevice",
  "workflowChecks",
]);

/**
 * Kinds of dry run: HELD executes in a transaction that is rolled back; OWN has an argument of its own and returns
 * the planned effects with unchanged records; NONE.
 */
export type DryRunKind = "HELD" | "OWN" | "NONE";

/** @param hasOwn whether the mutation has an argument of that name */
export function dryRunKind(transforms: readonly string[], hasOwn: boolean): DryRunKind {
  if (hasOwn) return "OWN";
  return transforms.every((transform) => inert.has(transform)) ? "HELD" : "NONE";
}

const refusal = (): CodedError =>
  new CodedError(
    "BAD_USER_INPUT",
    "This mutation does not support dry runs, because it affects other systems before anything is stored.",
    { field: dryRunField.name, reason: "NO_DRY_RUN" },
  );

/** @throws CodedError BAD_USER_INPUT if a dry run would have permanent effects */
export function refuseOutside(transform: string, pgSettings: object | null | undefined): void {
  if (!inert.has(transform) && workOf(pgSettings)?.heldTransaction) throw refusal();
}

/** Top-level fields of the operation, fragments expanded. */
function rootFields(document: DocumentNode, { selections }: SelectionSetNode): FieldNode[] {
  return selections.flatMap((selection) => {
    if (selection.kind === Kind.FIELD) return [selection];
    if (selection.kind === Kind.INLINE_FRAGMENT) return rootFields(document, selection.selectionSet);
    const fragment = document.definitions.find(
      (definition) =>
        definition.kind === Kind.FRAGMENT_DEFINITION && definition.name.value === selection.name.value,
    );
    return fragment && "selectionSet" in fragment ? rootFields(document, fragment.selectionSet) : [];
  });
}

/** The kind that the input type of the mutation declares. */
function kindOf(schema: GraphQLSchema, { name }: FieldNode): DryRunKind | undefined {
  const field = schema.getMutationType()?.getFields()[name.value];
  const type = getNullableType(field?.args.find((arg) => arg.name === "input")?.type);
  if (!isInputObjectType(type)) return undefined;
  return type.getFields()[dryRunField.name]?.extensions["dryRun"] as DryRunKind | undefined;
}

/**
 * Whether an operation is a dry run.
 * @throws CodedError BAD_USER_INPUT if only some of its fields are, or one does not support it
 */
export function isDryRun(
  schema: GraphQLSchema,
  document: DocumentNode,
  operationName: string | null | undefined,
  variables: Readonly<Record<string, unknown>>,
): boolean {
  const operation = getOperationAST(document, operationName);
  if (operation?.operation !== "mutation") return false;
  const defaults = (operation.variableDefinitions ?? []).flatMap(({ variable, defaultValue }) =>
    defaultValue ? [[variable.name.value, valueFromASTUntyped(defaultValue)] as const] : [],
  );
  const given = { ...Object.fromEntries(defaults), ...variables };
  const dry = rootFields(document, operation.selectionSet).flatMap((field) => {
    const kind = kindOf(schema, field);
    if (kind === undefined || kind === "OWN") return [];
    const input = field.arguments?.find(({ name }) => name.value === "input");
    const value = input && (valueFromASTUntyped(input.value, given) as Record<string, unknown> | null);
    const wanted = value?.[dryRunField.name] === true;
    if (wanted && kind === "NONE") throw refusal();
    return [wanted];
  });
  if (dry.includes(true) && dry.includes(false))
    throw new CodedError(
      "BAD_USER_INPUT",
      "Either all mutations of a request are dry runs or none: set dryRun in each input.",
      { field: dryRunField.name },
    );
  return dry.includes(true);
}
