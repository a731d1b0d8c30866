import { Kind, type OperationDefinitionNode } from "postgraphile/graphql";

/** Fields of an operation without a name that it is told by. */
const MOST_FIELDS = 3;

/** What an operation is told by in logs and traces: its name, or the fields that one without a name begins with, as `{leads, projects}`. */
export function operationLabel({ name, selectionSet }: OperationDefinitionNode): string {
  if (name) return name.value.slice(0, 128);
  const fields = selectionSet.selections.map((part) => (part.kind === Kind.FIELD ? part.name.value : "…"));
  const told = fields.slice(0, MOST_FIELDS).map((field) => field.slice(0, 64));
  return `{${told.join(", ")}${fields.length > MOST_FIELDS ? ", …" : ""}}`;
}
