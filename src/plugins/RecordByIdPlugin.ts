/**
 * `lead(id: ID!): Lead` for each record type. The id is resolved in the database, so that slugs, including former
 * ones, work for records that have them; null if there is none or the viewer may not see it. `@formerFinder
 * publicProject` in the comment of a table keeps a former name of the field, deprecated.
 */
import { TYPES } from "postgraphile/@dataplan/pg";
import { sql } from "postgraphile/pg-sql2";
import { tagTexts } from "../schema/codecNames.ts";
import { withArticle } from "../schema/nouns.ts";
import { recordTables } from "../schema/recordTables.ts";
import type { AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      RecordByIdPlugin: true;
    }
  }
}

export const RecordByIdPlugin: GraphileConfig.Plugin = {
  name: "RecordByIdPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields(fields, build, context) {
        if (!context.scope.isRootQuery) return fields;
        const { GraphQLNonNull, GraphQLID } = build.graphql;
        for (const resource of recordTables(build)) {
          const typeName = build.inflection.tableType(resource.codec);
          const fieldName = typeName[0]!.toLowerCase() + typeName.slice(1);
          const table = resource.extensions!.pg!.name!;
          const hasSlug = Boolean(resource.codec.attributes.slug);
          const subject = withArticle(typeName);
          const former = tagTexts(resource.extensions?.tags, "formerFinder");
          for (const name of [fieldName, ...former]) {
            if (fields[name]) continue;
            fields = build.extend(
              fields,
              {
                [name]: context.fieldWithHooks(
                  { fieldName: name, pgFieldResource: resource, isRecordById: true } as AnyScope,
                  () => ({
                    ...(name === fieldName ? {} : { deprecationReason: `Use \`${fieldName}\`.` }),
                    type: build.getGraphQLTypeByPgCodec(resource.codec, "output") as AnyType,
                    description: `${subject[0]!.toUpperCase()}${subject.slice(1)} by ${hasSlug ? "id or slug" : "id"}; null if there is none or the viewer may not see it.`,
                    args: {
                      id: {
                        description: hasSlug
                          ? "Id, or current or former slug."
                          : "Id of the record. The id of a record of another type is not found.",
                        type: new GraphQLNonNull(GraphQLID),
                      },
                    },
                    plan(_$root: unknown, fieldArgs) {
                      const $select = resource.find();
                      const $id = $select.placeholder(fieldArgs.getRaw("id"), TYPES.text);
                      $select.where(
                        sql`${$select.alias}.id = app_hidden.record_id(${sql.literal(table)}, ${$id})`,
                      );
                      return $select.setUnique(true).single();
                    },
                  }),
                ),
              },
              `RecordByIdPlugin: ${name}`,
            );
          }
        }
        return fields;
      },
    },
  },
};
