import { Kind, type OperationDefinitionNode } from "postgraphile/graphql";

/** Number of fields that identify an anonymous operation. */
const MOST_FIELDS = 3;

/**
 * Label of an operation in logs and traces: its name or, if anonymous, its leading fields, as `{leads, projects}`.
 */
export function operationLabel({ name, selectionSet }: OperationDefinitionNode): string {
  if (name) return name.value.slice(0, 128);
  const fields = selectionSet.selections.map((part) => (part.kind === Kind.FIELD ? part.name.value : "…"));
  const listed = fields.slice(0, MOST_FIELDS).map((field) => field.slice(0, 64));
  return `{${listed.join(", ")}${fields.length > MOST_FIELDS ? ", …" : ""}}`;
}
