/**
 * Groups by week, month, quarter and year beside the stock ones by hour and day; days, months and so on are those of UTC.
 * A column of type date has them too, from the week on.
 */
import { TYPES, type PgCodec } from "postgraphile/@dataplan/pg";
import { sql, type SQL } from "postgraphile/pg-sql2";
import { baseCodec } from "./codecs.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      GroupingPlugin: true;
    }
  }
}

export const GroupingPlugin: GraphileConfig.Plugin = {
  name: "GroupingPlugin",
  version: "1.0.0",
  schema: {
    hooks: {
      build: {
        after: ["aggregates"],
        callback(build) {
          for (const unit of ["week", "month", "quarter", "year"]) {
            for (const [type, cast] of [
              [TYPES.timestamptz, sql``],
              [TYPES.date, sql`::date`],
            ] as const) {
              build.pgAggregateGroupBySpecs!.push({
                id: `truncated-to-${unit}`,
                isSuitableType: (codec: PgCodec) => baseCodec(codec) === type,
                sqlWrap: (column: SQL) => sql`date_trunc(${sql.literal(unit)}, ${column})${cast}`,
                sqlWrapCodec: (codec: PgCodec) => codec,
              });
            }
          }
          return build;
        },
      },
    },
  },
};
