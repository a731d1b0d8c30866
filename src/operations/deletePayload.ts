/** `DeleteXPayload`: what a generated deletion answers. */
import { constant } from "postgraphile/grafast";
import type { AnyResource } from "../plugins/tables.ts";

/** How operations call the records of a table: by the tag @operationName, else like their type. */
export function operationNameOf(build: GraphileBuild.Build, resource: AnyResource): string {
  const name = resource.extensions?.tags?.operationName;
  return typeof name === "string" ? name : build.inflection.tableType(resource.codec);
}

/** Registers the payload of a table: id, deleted, and the records that foreign keys tagged @parent lead to. */
export function registerDeletePayload(build: GraphileBuild.Build, resource: AnyResource): void {
  const typeName = operationNameOf(build, resource);
  build.registerObjectType(
    `Delete${typeName}Payload`,
    {},
    () => {
      const { GraphQLNonNull, GraphQLID, GraphQLBoolean } = build.graphql;
      return {
        description: `What delete${typeName} did.`,
        fields: () => {
          const fields: Record<string, any> = {
            id: {
              description: "The deleted record.",
              type: new GraphQLNonNull(GraphQLID),
              plan: ($payload: any) => $payload.get("record").get("id"),
            },
            deleted: {
              description: "Whether it is deleted.",
              type: new GraphQLNonNull(GraphQLBoolean),
              plan: () => constant(true),
            },
          };
          for (const [relationName, relation] of Object.entries(resource.getRelations()) as [string, any][]) {
            if (relation.isReferencee || relation.extensions?.tags?.parent === undefined) continue;
            const fieldName = build.inflection.singleRelation({
              registry: resource.registry,
              codec: resource.codec,
              relationName,
            } as any);
            fields[fieldName] = {
              description: "The record that it belonged to.",
              type: build.getGraphQLTypeByPgCodec(relation.remoteResource.codec, "output"),
              plan: ($payload: any) => {
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
