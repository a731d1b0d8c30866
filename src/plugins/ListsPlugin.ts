/**
 * Lists and connections: `filter`, `first`, `offset`, `orderBy` (and `sort` if a table has it) on each of them, with
 * one maximum and one default; root lists of tables tagged `@portfolio <permission>` use their indexes.
 *
 * Replaces the stock arguments condition, first, offset and orderBy.
 */
import { listArguments } from "../lists/listArguments.ts";
import { isProjectList } from "../lists/projectList.ts";
import { isPaged, pagedArguments, planOfPage } from "../lists/pagedFunctions.ts";
import { portfolioField } from "../lists/portfolioField.ts";
import { listCodecs, registerRanges, registerTypes } from "../lists/listTypes.ts";
import type { AnyScope } from "../schema/stackTypes.ts";
import { recordTables, type AnyResource } from "../schema/recordTables.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      ListsPlugin: true;
    }
  }
}

/** The column by which a list finds the rows of a record. */
function parentColumn({ pgRelationDetails: details }: AnyScope): string | undefined {
  if (!details) return undefined;
  const { remoteAttributes } = details.registry.pgRelations[details.codec.name][details.relationName];
  return remoteAttributes.length === 1 ? remoteAttributes[0] : undefined;
}

export const ListsPlugin: GraphileConfig.Plugin = {
  name: "ListsPlugin",
  version: "1.0.0",
  after: ["PgFirstLastBeforeAfterArgsPlugin", "PgConditionArgumentPlugin"],
  schema: {
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          registerRanges(build);
          for (const codec of listCodecs(build)) registerTypes(build, codec);
          return _;
        },
      },
      GraphQLObjectType_fields_field_args: {
        after: ["default"],
        callback(args, build, context) {
          const { scope: fieldScope } = context;
          const { isPgFieldConnection, isPgFieldSimpleCollection, pgFieldResource } = fieldScope;
          if (!(isPgFieldConnection || isPgFieldSimpleCollection) || !pgFieldResource?.codec.attributes)
            return args;
          const listScope = (fieldScope as AnyScope).connectionOf ?? (fieldScope as AnyScope);
          const list = listArguments(
            build,
            pgFieldResource,
            Boolean(isPgFieldConnection),
            { ...args },
            context.Self.name === "Query",
            { isOfProject: isProjectList(listScope), parentColumn: parentColumn(listScope) },
          );
          return isPaged(pgFieldResource as AnyResource) ? pagedArguments(list) : list;
        },
      },
      GraphQLObjectType_fields_field: {
        // Others wrap the plan that it replaces, such as what refuses visitors.
        before: ["default"],
        callback(field, build, { scope }) {
          const resource = scope.pgFieldResource as AnyResource | undefined;
          if (!scope.isPgFieldSimpleCollection || !resource || !isPaged(resource)) return field;
          return { ...field, plan: planOfPage(build, resource) };
        },
      },
      GraphQLObjectType_fields(fields, build, context) {
        if (!context.scope.isRootQuery) return fields;
        for (const resource of recordTables(build)) {
          const permission = resource.extensions?.tags?.portfolio;
          if (typeof permission !== "string") continue;
          const fieldName = build.inflection.allRowsList(resource);
          fields = build.extend(
            fields,
            { [fieldName]: portfolioField(build, context, resource, permission, fieldName) },
            `ListsPlugin: ${fieldName}`,
          );
        }
        return fields;
      },
    },
  },
};
