/**
 * Conventions for the exposed schema:
 * - Root lists and connections exist only for tables tagged @portfolio. Other tables have lists, but no connections.
 * - Aggregates exist only on these connections.
 * - A column tagged @masked or @writeOnly is written through mutations but read through a computed column of the same
 *   name. It cannot be filtered, sorted, grouped or aggregated.
 * - orderBy offers attributes that are indexed, including by partial indexes (see src/lists/orders.ts).
 * - groupBy offers columns with few values: enumerations, booleans, parent records, and times.
 */
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import type { PgIndex } from "pg-introspection";
import type { OrderSpec } from "../lists/orders.ts";
import { baseCodec } from "../schema/codecNames.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      BehaviorsPlugin: true;
    }
  }
}

const unread = [
  "-attribute:select",
  "-attribute:filterBy",
  "-attribute:orderBy",
  "-attribute:aggregate",
  "-attribute:groupBy",
] as const;

function isGroupable(codec: PgCodec): boolean {
  const base = baseCodec(codec);
  return (
    typeof codec.extensions?.tags?.enum === "string" ||
    [TYPES.uuid, TYPES.boolean, TYPES.timestamptz, TYPES.date].some((type) => type === base)
  );
}

/** Bit of `pg_index.indoption` for a descending column. */
const DESCENDING = 1;

/** The order in which an index has the rows of one value of its first column; none if it has expressions. */
function ordersWithin(index: PgIndex, column: string): OrderSpec[][] {
  const keys = index.getKeys();
  if (keys[0]?.attname !== column || keys.includes(null)) return [];
  return [
    keys.slice(1).map((key, at): OrderSpec => {
      const isDescending = (index.indoption?.[at + 1] ?? 0) & DESCENDING;
      return { column: key!.attname, direction: isDescending ? "desc" : "asc" };
    }),
  ];
}

export const BehaviorsPlugin: GraphileConfig.Plugin = {
  name: "BehaviorsPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      // The stock plugin excludes partial indexes; ours all exclude deleted rows, which no list shows.
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        const indexes = pgAttribute.getClass()?.getIndexes() ?? [];
        attribute.extensions = Object.assign(Object.create(null), attribute.extensions, {
          // A view has no indexes; a column tagged @indexed is indexed in its table.
          isIndexed:
            pgAttribute.getTags().indexed !== undefined ||
            indexes.some((index) => index.getKeys().some((key) => key?.attname === pgAttribute.attname)),
          ...(pgAttribute.getClass()?.relkind !== "v" && {
            indexedOrders: indexes.flatMap((index) => ordersWithin(index, pgAttribute.attname)),
          }),
        });
      },
    },
  },
  schema: {
    entityBehavior: {
      pgCodecAttribute: {
        override(behavior, [codec, attributeName]) {
          const attribute = codec.attributes[attributeName]!;
          const result: AnyType[] = [behavior];
          const { masked, writeOnly } = attribute.extensions?.tags ?? {};
          if (masked || writeOnly) result.push(...unread);
          if (attributeName === "deleted_at" || !isGroupable(attribute.codec))
            result.push("-attribute:groupBy");
          return result;
        },
      },
      pgResource: {
        override(behavior, resource): AnyType[] {
          if (resource.parameters) {
            // The condition of a filter is not a field of the record.
            if (resource.extensions?.tags?.filter) return [behavior, "-*"];
            return [
              behavior,
              "-queryField:resource:connection",
              "-typeField:resource:connection",
              "-resource:aggregates",
              "-resource:groupedAggregates",
            ];
          }
          return resource.extensions?.tags?.portfolio
            ? [behavior, "-query:resource:list", "query:resource:connection"]
            : [
                behavior,
                "-query:resource:list",
                "-query:resource:connection",
                "-resource:aggregates",
                "-resource:groupedAggregates",
              ];
        },
      },
      pgResourceUnique: {
        override: (behavior) => [behavior, "-single"],
      },
      pgCodecRelation: {
        override: (behavior) => [
          behavior,
          "-manyRelation:resource:connection",
          "-singularRelation:resource:connection",
        ],
      },
    },
  },
};
