/**
 * Groups by month, week and year beside the day and hour that come with aggregates, all in UTC and spelt as in DateTime: leads by month is the
 * first thing that people ask of a sales report.
 */
import { TYPES } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      GroupByPlugin: true;
    }
  }
}

const units = ["hour", "day", "week", "month", "year"] as const;

export const GroupByPlugin: GraphileConfig.Plugin = {
  name: "GroupByPlugin",
  version: "1.0.0",
  after: ["PgAggregatesSpecsPlugin"],
  schema: {
    hooks: {
      build: {
        after: ["aggregates", "PgAggregatesSpecsPlugin"],
        callback(build) {
          build.pgAggregateGroupBySpecs = units.map((unit) => ({
            id: `truncated-to-${unit}`,
            isSuitableType: (codec: any) => codec === TYPES.timestamptz,
            sqlWrap: (fragment: SQL) =>
              sql`to_char(date_trunc(${sql.literal(unit)}, ${fragment} at time zone 'UTC'), 'YYYY-MM-DD"T"HH24:MI:SS"Z"')`,
            sqlWrapCodec: () => TYPES.text,
          }));
          return build;
        },
      },
    },
  },
};
