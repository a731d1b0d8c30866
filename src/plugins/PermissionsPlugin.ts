/**
 * Lists that only some may see: a foreign key tagged `@backwardPermission lead.read`, or a function tagged
 * `@permission audit.read`, gives null, without an error, where the viewer lacks the permission. Null says "not yours
 * to see", an empty list says "none". The policies of the listed table hold all the same.
 */
import { inhibitOnNull } from "postgraphile/grafast";
import { pgClassExpression, TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PermissionsPlugin: true;
    }
  }
}

/** Whether the viewer has the permission where the row of `alias` belongs. */
function allowed(codec: PgCodec, alias: SQL, permission: string): SQL {
  const wanted = sql.literal(permission);
  if (codec.name === "organizations") return sql`app_hidden.organization_can(${alias}.id, ${wanted})`;
  if (codec.name === "projects")
    return sql`app_hidden.project_can(${alias}.id, ${alias}.organization_id, ${wanted})`;
  return sql`app_hidden.project_can(${alias}.project_id, ${alias}.organization_id, ${wanted})`;
}

export const PermissionsPlugin: GraphileConfig.Plugin = {
  name: "PermissionsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        after: ["default"],
        callback(field, build, context) {
          const { pgCodec, pgRelationDetails, pgFieldResource, isPgManyRelationListField } =
            context.scope as any;
          if (!pgCodec) return field;
          if (isPgManyRelationListField && pgRelationDetails) {
            const relation =
              pgRelationDetails.registry.pgRelations[pgRelationDetails.codec.name]?.[
                pgRelationDetails.relationName
              ];
            const permission = relation?.extensions?.tags?.backwardPermission;
            if (typeof permission !== "string") return field;
            return {
              ...field,
              type: build.graphql.getNullableType(field.type as any),
              plan: ($given: any) => {
                // A mutation's own statement does not see what it changed, such as the creator's membership.
                const $record =
                  $given.getClassStep().mode === "mutation"
                    ? (build.pgTableResource(pgCodec)!.get({ id: $given.get("id") } as any) as any)
                    : $given;
                const [remote] = relation.remoteAttributes;
                const [local] = relation.localAttributes;
                const alias = $record.getClassStep().alias;
                const $key = pgClassExpression(
                  $record,
                  TYPES.uuid,
                )`case when ${allowed(pgCodec, alias, permission)} then ${alias}.${sql.identifier(local)} end`;
                return relation.remoteResource.find({ [remote]: inhibitOnNull($key) });
              },
            };
          }
          const permission = pgFieldResource?.parameters && pgFieldResource.extensions?.tags?.permission;
          if (typeof permission !== "string") return field;
          return field;
        },
      },
    },
  },
};
