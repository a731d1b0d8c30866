import { CriticalityLevel, diff } from "@graphql-inspector/core";
import {
  type GraphQLSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from "postgraphile/graphql";

/** The required format of a deprecation reason; docs/versions.md explains it. */
const reasonForm = /^Use `[\w.:]+`.*\. Removed after \d{4}-\d{2}-\d{2}\.$/s;

interface Deprecated {
  coordinate: string;
  reason: string;
}

function deprecatedOf(schema: GraphQLSchema): Deprecated[] {
  const found: Deprecated[] = [];
  const add = (coordinate: string, reason: string | null | undefined) => {
    if (reason !== undefined && reason !== null) found.push({ coordinate, reason });
  };
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__")) continue;
    if (isEnumType(type))
      for (const value of type.getValues()) add(`${type.name}.${value.name}`, value.deprecationReason);
    if (isInputObjectType(type))
      for (const field of Object.values(type.getFields()))
        add(`${type.name}.${field.name}`, field.deprecationReason);
    if (!isObjectType(type) && !isInterfaceType(type)) continue;
    for (const field of Object.values(type.getFields())) {
      add(`${type.name}.${field.name}`, field.deprecationReason);
      for (const argument of field.args)
        add(`${type.name}.${field.name}(${argument.name}:)`, argument.deprecationReason);
    }
  }
  return found;
}

/** A finding for each deprecation that does not name the successor and the end date. */
export const deprecationFaults = (schema: GraphQLSchema): string[] =>
  deprecatedOf(schema)
    .filter(({ reason }) => !reasonForm.test(reason))
    .map(
      ({ coordinate, reason }) =>
        `${coordinate} is deprecated with "${reason}": write "Use \`successor\`. Removed after YYYY-MM-DD."`,
    );

/** A finding for each change between two versions of the schema that breaks clients, by the rules of GraphQL Inspector. */
export async function breakingChanges(before: GraphQLSchema, after: GraphQLSchema): Promise<string[]> {
  const changes = await diff(before, after);
  return changes
    .filter(({ criticality }) => criticality.level === CriticalityLevel.Breaking)
    .map(({ message, path }) => (path === undefined ? message : `${path}: ${message}`));
}
