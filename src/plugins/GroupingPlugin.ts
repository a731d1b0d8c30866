/**
 * Groups aggregates by time, truncated to hour, day, week, month, quarter or year, in UTC and formatted as DateTime
 * and Date; the stock plugin only supports hour and day, in PostgreSQL's format. Distinct ids of a table are counted
 * as its rows.
 */
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { baseCodec } from "../schema/codecNames.ts";
import type { AnyQueryBuilder, AnyScope, AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      GroupingPlugin: true;
    }
  }
}

const units = ["hour", "day", "week", "month", "quarter", "year"] as const;
const hasDays = (unit: string) => unit !== "hour" && unit !== "day";

export const GroupingPlugin: GraphileConfig.Plugin = {
  name: "GroupingPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      build: {
        after: ["aggregates"],
        callback(build) {
          build.pgAggregateGroupBySpecs = units.flatMap((unit) => [
            {
              id: `truncated-to-${unit}`,
              isSuitableType: (codec: PgCodec) => baseCodec(codec) === TYPES.timestamptz,
              sqlWrap: (column: SQL) =>
                sql`to_char(date_trunc(${sql.literal(unit)}, ${column} at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
              sqlWrapCodec: () => TYPES.text,
            },
            {
              id: `truncated-to-${unit}`,
              isSuitableType: (codec: PgCodec) => hasDays(unit) && baseCodec(codec) === TYPES.date,
              sqlWrap: (column: SQL) =>
                sql`to_char(date_trunc(${sql.literal(unit)}, ${column}), 'YYYY-MM-DD')`,
              sqlWrapCodec: () => TYPES.text,
            },
          ]);
          return build;
        },
      },
      GraphQLObjectType_fields_field(field, build, context) {
        const {
          isPgAggregateType,
          pgAggregateSpec: spec,
          pgTypeResource: resource,
        } = context.scope as AnyScope;
        const { isPgConnectionAggregateField, fieldName } = context.scope;
        if (!isPgAggregateType || spec?.id !== "distinctCount" || !isPgConnectionAggregateField) return field;
        const isKey = resource.uniques.some(
          ({ isPrimary, attributes: [first, ...others] }: AnyType) =>
            isPrimary &&
            others.length === 0 &&
            build.inflection.attribute({ attributeName: first, codec: resource.codec }) === fieldName,
        );
        if (!isKey) return field;
        // PERF: all values are distinct; sorting them to find that out dominates the cost.
        return {
          ...field,
          plan: ($row) => $row.select(sql`count(*)`, TYPES.bigint),
        };
      },
      GraphQLEnumType_values: {
        after: ["PgAggregatesAddGroupByAggregateEnumValuesForAttributesPlugin"],
        callback(values, build, context) {
          const { isPgAggregateGroupEnum, pgTypeResource: resource } = context.scope;
          if (!isPgAggregateGroupEnum) return values;
          for (const [attributeName, attribute] of Object.entries<AnyType>(resource.codec.attributes ?? {})) {
            const name = (build.inflection as AnyType).aggregateGroupByAttributeEnum({
              resource,
              attributeName,
            });
            if (!values[name] || baseCodec(attribute.codec) !== TYPES.timestamptz) continue;
            const apply = (query: AnyQueryBuilder) =>
              query.groupBy({
                fragment: sql`to_char(${query.alias}.${sql.identifier(attributeName)} at time zone 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"')`,
                codec: TYPES.text,
              });
            values[name] = { ...values[name], extensions: { grafast: { apply } } };
          }
          return values;
        },
      },
    },
  },
};
