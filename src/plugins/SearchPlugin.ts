/**
 * `search`: passes the list argument `first` to the SQL function, so that it finds no more than the response
 * contains; and `SearchResult.node`, the found record, a union of all kinds. Null if it has been deleted meanwhile.
 */
import { lambda, type ExecutableStep } from "postgraphile/grafast";
import { pageSize } from "../lists/pageArguments.ts";
import { camel } from "../schema/codecNames.ts";
import { recordUnion } from "../schema/recordUnion.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SearchPlugin: true;
    }
  }
}

/** Table and type of the found record, by SearchResult.type. */
const kinds: Record<string, [table: string, type: string]> = {
  PROJECT: ["projects", "Project"],
  FLOOR_PLAN: ["floor_plans", "FloorPlan"],
  UNIT: ["units", "Unit"],
  BUYER: ["buyers", "Buyer"],
  BUYER_AGENT: ["agents", "Agent"],
  LEAD: ["leads", "Lead"],
  RESERVATION: ["reservations", "Reservation"],
  OFFER: ["offers", "Offer"],
  AGREEMENT: ["agreements", "Agreement"],
};

export const SearchPlugin: GraphileConfig.Plugin = {
  name: "SearchPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      ...recordUnion("SearchPlugin", {
        name: "SearchNode",
        description: "A record of a type that `search` can find.",
        field: { of: "SearchResult", name: "node", description: "The record that was found." },
        tables: ({ pgResources }) =>
          new Map(
            Object.values(kinds).map(([table, type]) => [type, pgResources[table] as unknown as AnyResource]),
          ),
        record: ($result) => ({
          type: lambda($result.get("type") as ExecutableStep, (type) => kinds[String(type)]?.[1] ?? null),
          id: $result.get("id"),
        }),
      }),
      GraphQLObjectType_fields_field(field, build, { scope }) {
        if (!scope.isRootQuery || scope.fieldName !== "search") return field;
        const resource = build.pgResources.search as unknown as AnyResource;
        return {
          ...field,
          plan(_$root: unknown, fieldArgs) {
            return resource.execute(
              resource.parameters!.map(({ name, codec }: AnyType) => ({
                name,
                step:
                  name === "amount"
                    ? lambda(fieldArgs.getRaw("first"), (first) => pageSize(first, 100))
                    : fieldArgs.getRaw(camel(name)),
                pgCodec: codec,
              })),
            );
          },
        };
      },
      GraphQLObjectType_fields_field_args: {
        after: ["default", "ListsPlugin"],
        callback(args, build, { scope }) {
          if (!scope.isRootQuery || scope.fieldName !== "search") return args;
          const { query, types, projectId, first } = args as Record<string, AnyType>;
          const { GraphQLList, GraphQLNonNull } = build.graphql;
          const type = new GraphQLNonNull(types.type.ofType);
          return {
            query,
            types: { ...types, type: new GraphQLList(type) },
            projectId,
            first: { ...first, applyPlan: undefined },
          };
        },
      },
    },
  },
};
