/**
 * `Node`: the interface of all records that are table rows, whose ids are globally unique, and `node(id:)`,
 * `nodes(ids:)`, with which client caches refetch a record of unknown type. Rows of views have the ids of other
 * records, and are not nodes.
 *
 * app_hidden.seen_nodes finds the table of an id, but only if the viewer can see the record: nothing is read
 * otherwise, so the response and its cost are the same as for an unknown id.
 */
import { context, each, type ExecutableStep, get, lambda, loadOne, object } from "postgraphile/grafast";
import { TYPES } from "postgraphile/@dataplan/pg";
import { CodedError } from "../base/errors.ts";
import { recordTables, tableName, type AnyResource } from "../schema/recordTables.ts";
import type { AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      RecordNodesPlugin: true;
    }
  }
}

const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;
/** Maximum number of ids for `nodes`. */
const MOST_IDS = 100;

/** Tables whose rows are nodes, by type name. */
function nodeTables(build: GraphileBuild.Build): Map<string, AnyResource> {
  return new Map(
    recordTables(build)
      .filter(
        ({ codec }) =>
          codec.extensions?.tags?.primaryKey === undefined && codec.attributes.id.codec === TYPES.uuid,
      )
      .map((resource) => [build.inflection.tableType(resource.codec), resource]),
  );
}

/** Table names by id, for visible records; refuses invalid ids. */
const tablesOfIds = {
  name: "tablesOfIds",
  shared: () => context(),
  async load(ids: readonly unknown[], { shared }: { shared: AnyScope }): Promise<(string | null)[]> {
    if (!ids.every((id) => typeof id === "string" && uuid.test(id)))
      throw new CodedError("BAD_USER_INPUT", "Not a valid id; use the id that the API returned, a UUID.", {
        field: "id",
      });
    const { rows } = await shared.withPgClient(shared.pgSettings, (client: AnyType) =>
      client.query({
        text: "select id, table_name from app_hidden.seen_nodes($1)",
        values: [ids],
      }),
    );
    const found = new Map(rows.map(({ id, table_name: table }: Record<string, string>) => [id, table]));
    return ids.map((id) => found.get(String(id).toLowerCase()) ?? null) as (string | null)[];
  },
};

export const RecordNodesPlugin: GraphileConfig.Plugin = {
  name: "RecordNodesPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      init: {
        after: ["PgCodecs"],
        callback(_, build) {
          const { GraphQLID, GraphQLNonNull } = build.graphql;
          build.registerInterfaceType(
            "Node",
            {},
            () => {
              const tables = nodeTables(build);
              return {
                description: "A record with a globally unique id.",
                fields: () => ({
                  id: {
                    type: new GraphQLNonNull(GraphQLID),
                    description: "UUID; ids in ascending order are in order of creation.",
                  },
                }),
                planType: ($node) => ({
                  $__typename: get($node, "type") as ExecutableStep,
                  planForType: (type) =>
                    tables.get(type.name)!.get({ id: get($node, "id") as ExecutableStep }),
                }),
              };
            },
            "RecordNodesPlugin",
          );
          return _;
        },
      },
      GraphQLObjectType_interfaces(list, build, { scope }) {
        const { pgCodec, isPgClassType } = scope as { pgCodec?: unknown; isPgClassType?: boolean };
        const isNode =
          isPgClassType && [...nodeTables(build).values()].some(({ codec }) => codec === pgCodec);
        const type = isNode ? build.getTypeByName("Node") : undefined;
        return build.graphql.isInterfaceType(type) ? [...list, type] : list;
      },
      GraphQLObjectType_fields(fields, build, { scope, fieldWithHooks }) {
        if (!scope.isRootQuery) return fields;
        const { GraphQLID, GraphQLList, GraphQLNonNull } = build.graphql;
        const typeNames = new Map(
          [...nodeTables(build)].map(([name, resource]) => [tableName(resource)[1], name]),
        );
        const nodeOf = ($id: ExecutableStep) =>
          object({
            type: lambda(
              loadOne($id, tablesOfIds) as ExecutableStep,
              (table) => typeNames.get(String(table)) ?? null,
            ),
            id: $id,
          });
        return build.extend(
          fields,
          {
            node: fieldWithHooks({ fieldName: "node", isNodeField: true } as AnyScope, () => ({
              type: build.getOutputTypeByName("Node"),
              description:
                "A record of any type by its id; null if there is none or the viewer may not see it.",
              args: {
                id: {
                  description: "The field `id` of a record of any type.",
                  type: new GraphQLNonNull(GraphQLID),
                },
              },
              plan: (_$root: unknown, fieldArgs) => nodeOf(fieldArgs.getRaw("id")),
            })),
            nodes: fieldWithHooks({ fieldName: "nodes", isNodeField: true } as AnyScope, () => ({
              type: new GraphQLNonNull(new GraphQLList(build.getOutputTypeByName("Node"))),
              description: `Records of any types by their ids, in the order of \`ids\`; null in place of a record that does not exist or that the viewer may not see.`,
              args: {
                ids: {
                  description: `The fields \`id\` of up to ${MOST_IDS} records.`,
                  type: new GraphQLNonNull(new GraphQLList(new GraphQLNonNull(GraphQLID))),
                },
              },
              plan: (_$root: unknown, fieldArgs) =>
                each(lambda(fieldArgs.getRaw("ids"), checkedIds) as AnyType, nodeOf),
            })),
          },
          "RecordNodesPlugin",
        );
      },
    },
  },
};

function checkedIds(ids: unknown): unknown {
  if ((ids as unknown[]).length > MOST_IDS)
    throw new CodedError("BAD_USER_INPUT", `At most ${MOST_IDS} ids can be given.`, { field: "ids" });
  return ids;
}
