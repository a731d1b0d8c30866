/** `DeleteXPayload`: the payload of a generated deletion. */
import { constant, type ExecutableStep } from "postgraphile/grafast";
import type { GraphQLFieldConfig } from "postgraphile/graphql";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyStep, AnyType } from "../schema/stackTypes.ts";

/** Name of a table's records in mutations: the tag @operationName, otherwise like their type. */
export function operationNameOf(build: GraphileBuild.Build, resource: AnyResource): string {
  const name = resource.extensions?.tags?.operationName;
  return typeof name === "string" ? name : build.inflection.tableType(resource.codec);
}

/**
 * Cache hints of a payload: a payload is not a record, and caching it under its `id` would replace the record itself.
 * @param idOf returns the id from the step of the payload
 */
export function deletedFields(
  build: GraphileBuild.Build,
  typeName: string,
  idOf: ($payload: AnyStep) => ExecutableStep,
): Record<"deletedId" | "deletedType", GraphQLFieldConfig<AnyType, AnyType> & { plan: AnyType }> {
  const { GraphQLNonNull, GraphQLID, GraphQLString } = build.graphql;
  return {
    deletedId: {
      description: "Id of the deleted record, for clients to remove it from their cache.",
      type: new GraphQLNonNull(GraphQLID),
      plan: idOf,
    },
    deletedType: {
      description: `GraphQL type of the deleted record: ${typeName}.`,
      type: new GraphQLNonNull(GraphQLString),
      plan: () => constant(typeName),
    },
  };
}

/**
 * Registers the payload of a table: id, deleted, deletedId, deletedType, and the records that foreign keys tagged
 * @parent refer to.
 */
export function registerDeletePayload(build: GraphileBuild.Build, resource: AnyResource): void {
  const typeName = operationNameOf(build, resource);
  build.registerObjectType(
    `Delete${typeName}Payload`,
    {},
    () => {
      const { GraphQLNonNull, GraphQLID, GraphQLBoolean } = build.graphql;
      return {
        description: `Result of \`delete${typeName}\`: the id of the deleted record, and the record that it belonged to.`,
        fields: () => {
          const fields: Record<string, AnyType> = {
            id: {
              description: "Same as `deletedId`.",
              type: new GraphQLNonNull(GraphQLID),
              plan: ($payload: AnyStep) => $payload.get("record").get("id"),
            },
            deleted: {
              description: "Always true; a refused deletion is an error.",
              type: new GraphQLNonNull(GraphQLBoolean),
              plan: () => constant(true),
            },
            ...deletedFields(build, build.inflection.tableType(resource.codec), ($payload) =>
              $payload.get("record").get("id"),
            ),
          };
          for (const [relationName, relation] of Object.entries(resource.getRelations()) as [
            string,
            AnyType,
          ][]) {
            if (relation.isReferencee || relation.extensions?.tags?.parent === undefined) continue;
            const fieldName = build.inflection.singleRelation({
              registry: resource.registry,
              codec: resource.codec,
              relationName,
            });
            fields[fieldName] = {
              description: "The record that the deleted one belonged to; null if the viewer may not see it.",
              type: build.getGraphQLTypeByPgCodec(relation.remoteResource.codec, "output"),
              plan: ($payload: AnyStep) => {
                const $record = $payload.get("record");
                return relation.remoteResource.get(
                  Object.fromEntries(
                    relation.remoteAttributes.map((remote: string, i: number) => [
                      remote,
                      $record.get(relation.localAttributes[i]),
                    ]),
                  ),
                );
              },
            };
          }
          return fields;
        },
      };
    },
    `OperationsPlugin: delete${typeName}`,
  );
}
