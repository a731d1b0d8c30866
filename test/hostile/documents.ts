/** Documents of attackers, generated from the served schema. */
import { randomInt } from "node:crypto";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import {
  buildSchema,
  getNamedType,
  type GraphQLField,
  type GraphQLObjectType,
  isLeafType,
  isNonNullType,
  isObjectType,
  type OperationDefinitionNode,
  parse,
} from "postgraphile/graphql";
import { planningSteps } from "../../src/limits/planningSteps.ts";
import { queryLimits } from "../../src/admission/queryLimits.ts";

const file = join(import.meta.dirname, "../../schema.graphql");
export const schema = buildSchema(readFileSync(file, "utf8"));

const fieldsOf = (type: string): GraphQLField<unknown, unknown>[] =>
  Object.values((schema.getType(type) as GraphQLObjectType).getFields()).filter((field) =>
    field.args.every((argument) => !isNonNullType(argument.type) || argument.defaultValue !== undefined),
  );

const scalarsOf = (type: string): string[] =>
  fieldsOf(type)
    .filter((field) => isLeafType(getNamedType(field.type)))
    .map(({ name }) => name);

/** Selects everything of a record: its own fields, and those of related records; `first` limits each list. */
export function everythingOf(type: string, first?: number): string[] {
  const around = fieldsOf(type)
    .filter((field) => isObjectType(getNamedType(field.type)))
    .map((field) => {
      const cut =
        first !== undefined && field.args.some(({ name }) => name === "first") ? `(first: ${first})` : "";
      const scalars = scalarsOf(getNamedType(field.type).name);
      return `${field.name}${cut} { ${scalars.join(" ") || "__typename"} }`;
    });
  return [...scalarsOf(type), ...around];
}

/** As many fields of a record as an operation may select. */
export function withinLimits(root: string, type: string): string[] {
  const all = everythingOf(type, 1);
  for (let count = all.length; ; count -= 1) {
    const document = parse(`{ ${root} { ${all.slice(0, count).join(" ")} } }`);
    const [operation] = document.definitions as OperationDefinitionNode[];
    if (planningSteps(schema, document, operation!).steps.total <= queryLimits.planning)
      return all.slice(0, count);
  }
}

/** A unique text without an effect. */
export const unlikeAnyOther = (document: string): string => `#${randomInt(2 ** 47)}\n${document}`;
