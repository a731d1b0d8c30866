/**
 * Connections beside the lists of related records whose table has a connection in Query: `Project.leadsConnection` beside
 * `Project.leads`. Each has the plan of its list, and with it the same rows, order, permission and null.
 */
import { connection, lambda } from "postgraphile/grafast";
import type { FieldArgs } from "postgraphile/grafast";
import type { GraphQLFieldConfigMap, GraphQLObjectType } from "postgraphile/graphql";
import { pageSizes } from "../lists/pageArguments.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyStep, AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      NestedConnectionsPlugin: true;
    }
  }
}

/** The scopes of the lists of a type, by field name. */
const listsOf = new WeakMap<GraphQLObjectType, Map<string, AnyScope>>();

/** The connection type of the records of a list; undefined if Query has no connection of them. */
function connectionType(build: GraphileBuild.Build, { pgFieldResource }: AnyScope): AnyType {
  const table = build.pgTableResource(pgFieldResource.codec) as AnyResource | null;
  if (typeof table?.extensions?.tags?.portfolio !== "string") return undefined;
  return build.getOutputTypeByName(build.inflection.tableConnectionType(table.codec));
}

/** It makes the connection read its page, also for totals alone: so it is null where its list is null. */
function setPage($connection: AnyStep, fieldArgs: FieldArgs): void {
  const $sizes = lambda([fieldArgs.getRaw("first"), fieldArgs.getRaw("last")], ([first, last]) =>
    pageSizes(first, last),
  );
  $connection.setFirst(lambda($sizes, ({ first }) => first));
  $connection.setLast(lambda($sizes, ({ last }) => last));
}

export const NestedConnectionsPlugin: GraphileConfig.Plugin = {
  name: "NestedConnectionsPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      GraphQLObjectType_fields_field(field, _build, { Self, scope }) {
        const { isPgFieldSimpleCollection, pgFieldResource, fieldName, isRootQuery } = scope as AnyScope;
        if (isRootQuery || !isPgFieldSimpleCollection || !pgFieldResource) return field;
        const lists = listsOf.get(Self) ?? new Map<string, AnyScope>();
        listsOf.set(Self, lists.set(fieldName, scope));
        return field;
      },
      GraphQLObjectType_fields: {
        after: ["PgRelationsPlugin", "PgCustomTypeFieldPlugin"],
        callback(fields, build, context) {
          const added: GraphQLFieldConfigMap<AnyType, AnyType> = {};
          for (const [listName, connectionOf] of listsOf.get(context.Self) ?? []) {
            const type = connectionType(build, connectionOf);
            const list = fields[listName];
            if (!type || !list) continue;
            const fieldName = build.inflection.connectionField(listName);
            const { pgFieldResource } = connectionOf;
            const scope: AnyScope = { fieldName, pgFieldResource, isPgFieldConnection: true, connectionOf };
            added[fieldName] = context.fieldWithHooks(scope as AnyType, () => ({
              description: list.description,
              deprecationReason: list.deprecationReason,
              type: build.graphql.isNonNullType(list.type) ? new build.graphql.GraphQLNonNull(type) : type,
              plan($record: AnyStep, fieldArgs: FieldArgs, info: AnyType) {
                const $connection: AnyStep = connection((list.plan as AnyType)($record, fieldArgs, info));
                setPage($connection, fieldArgs);
                return $connection;
              },
            }));
          }
          return build.extend(fields, added, "NestedConnectionsPlugin");
        },
      },
    },
  },
};
