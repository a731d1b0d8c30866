/**
 * Connections beside the lists of related records whose table has a connection in Query: `Project.leads` and
 * `Project.leadsConnection`. Each has the plan of its list, and with it the same rows, permission and null.
 */
import { connection, lambda } from "postgraphile/grafast";
import type { GraphQLFieldConfigMap, GraphQLObjectType } from "postgraphile/graphql";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyStep, AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NestedConnectionsPlugin: true;
    }
  }
}

/** The lists of a type, by field name. */
const listsOf = new WeakMap<GraphQLObjectType, Map<string, AnyScope>>();

/** PERF: without the records of its page, a connection reads no page; where its list is null, it stays null all the same. */
function nullAsItsList($connection: AnyStep): void {
  const optimize = $connection.optimize.bind($connection);
  const $select = $connection.getSubplan();
  const [$key] = $select.keysOfPermission ?? [];
  if (!$key) return;
  $connection.optimize = () => {
    const $optimized = optimize();
    return $optimized === $connection ? $connection : lambda($key, () => noPage);
  };
}

const noPage = Object.freeze({ items: Object.freeze([]), hasNextPage: false, hasPreviousPage: false });

export const NestedConnectionsPlugin: GraphileConfig.Plugin = {
  name: "NestedConnectionsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field: {
        before: ["default"],
        callback(field, _build, { Self, scope }) {
          const { isPgFieldSimpleCollection, pgFieldResource, fieldName, isRootQuery } = scope as AnyScope;
          if (isRootQuery || !isPgFieldSimpleCollection || !pgFieldResource) return field;
          if (!listsOf.has(Self)) listsOf.set(Self, new Map());
          listsOf.get(Self)!.set(fieldName, scope);
          return field;
        },
      },
      GraphQLObjectType_fields: {
        after: ["PgRelationsPlugin", "PgCustomTypeFieldPlugin"],
        callback(fields, build, context) {
          const added: GraphQLFieldConfigMap<AnyType, AnyType> = {};
          for (const [listName, listScope] of listsOf.get(context.Self) ?? []) {
            const resource = listScope.pgFieldResource as AnyResource;
            const table = build.pgTableResource(resource.codec as AnyType) as AnyResource | null;
            if (typeof table?.extensions?.tags?.portfolio !== "string") continue;
            const list = fields[listName]!;
            const type = build.getOutputTypeByName(build.inflection.tableConnectionType(table.codec)) as AnyType;
            if (!type) continue;
            const fieldName = build.inflection.connectionField(listName);
            added[fieldName] = context.fieldWithHooks(
              { fieldName, pgFieldResource: resource, isPgFieldConnection: true } as AnyType,
              () => ({
                description: list.description,
                deprecationReason: list.deprecationReason,
                type: build.graphql.isNonNullType(list.type) ? new build.graphql.GraphQLNonNull(type) : type,
                plan($record: AnyStep, fieldArgs: AnyType, info: AnyType) {
                  const $connection = connection((list.plan as AnyType)($record, fieldArgs, info)) as AnyStep;
                  nullAsItsList($connection);
                  return $connection;
                },
              }),
            );
          }
          return build.extend(fields, added, "NestedConnectionsPlugin");
        },
      },
    },
  },
};
