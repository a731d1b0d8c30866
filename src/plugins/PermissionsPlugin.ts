/**
 * Restricted lists: a foreign key tagged `@backwardPermission lead.read`, or a function tagged `@permission
 * audit.read` and, for the column that its rows refer to, `@by project_id`, returns null, without an error, if the
 * viewer lacks the permission. Null means "not visible to you", an empty list means "none". The policies of the
 * listed table apply in any case.
 */
import { constant, inhibitOnNull, lambda } from "postgraphile/grafast";
import { pgClassExpression, TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { applyOrder, isGiven, newestFirst } from "../lists/listArguments.ts";
import { isProjectList, rowsOfProject } from "../lists/projectList.ts";
import type { AnyStep, AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      PermissionsPlugin: true;
    }
  }
}

/** Whether the viewer has the permission in the scope of the row of `alias`. */
function allowed(codec: PgCodec, alias: SQL, permission: string): SQL {
  const wanted = sql.literal(permission);
  if (codec.name === "organizations") return sql`app_hidden.organization_can(${alias}.id, ${wanted})`;
  if (codec.name === "projects")
    return sql`app_hidden.project_can(${alias}.id, ${alias}.organization_id, ${wanted})`;
  return sql`app_hidden.project_can(${alias}.project_id, ${alias}.organization_id, ${wanted})`;
}

/** Re-reads the record after a mutation, whose own statement does not see its changes, such as a new membership. */
function afterMutation(build: GraphileBuild.Build, codec: PgCodec, $record: AnyStep) {
  if ($record.getClassStep().mode !== "mutation") return $record;
  return build.pgTableResource(codec as AnyType)!.get({ id: $record.get("id") });
}

/** The column of the record that its list refers to; inhibited without the permission, so that the list is null. */
function keyFor(codec: PgCodec, $record: AnyStep, column: string, permission: string) {
  const { alias } = $record.getClassStep();
  const $key = pgClassExpression(
    $record,
    TYPES.uuid,
  )`case when ${allowed(codec, alias, permission)} then ${alias}.${sql.identifier(column)} end`;
  return inhibitOnNull($key);
}

export const PermissionsPlugin: GraphileConfig.Plugin = {
  name: "PermissionsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        after: ["default"],
        callback(field, build, context) {
          const { pgCodec, pgRelationDetails, pgFieldResource, isPgManyRelationListField, connectionOf } =
            context.scope as AnyScope;
          // A connection has the plan of its list.
          if (!pgCodec || connectionOf) return field;
          if (isPgManyRelationListField && pgRelationDetails) {
            const relation =
              pgRelationDetails.registry.pgRelations[pgRelationDetails.codec.name]?.[
                pgRelationDetails.relationName
              ];
            const permission = relation?.extensions?.tags?.backwardPermission;
            if (typeof permission !== "string") return field;
            return {
              ...field,
              type: build.graphql.getNullableType(field.type),
              plan: ($given, fieldArgs) => {
                const $record = afterMutation(build, pgCodec, $given);
                const [remote] = relation.remoteAttributes;
                const [local] = relation.localAttributes;
                const $key = keyFor(pgCodec, $record, local, permission);
                const $list = relation.remoteResource.find({ [remote]: $key });
                if (isProjectList(context.scope))
                  rowsOfProject(build, pgFieldResource, $list, $key, fieldArgs);
                return $list;
              },
            };
          }
          const { permission, by } = (pgFieldResource?.parameters && pgFieldResource.extensions?.tags) || {};
          if (typeof permission !== "string" || typeof by !== "string") return field;
          const table = build.pgTableResource(pgFieldResource.codec)!;
          return {
            ...field,
            plan: ($given, fieldArgs) => {
              const $record = afterMutation(build, pgCodec, $given);
              const $list = table.find({ [by]: keyFor(pgCodec, $record, "id", permission) }) as AnyType;
              const orderBy = "$orderBy" in fieldArgs ? fieldArgs.getRaw("orderBy") : constant(null);
              const $order = lambda(orderBy, (given) => (isGiven(given) ? null : newestFirst(table, by)));
              applyOrder($list, $order, table.codec as PgCodec);
              return $list;
            },
          };
        },
      },
    },
  },
};
