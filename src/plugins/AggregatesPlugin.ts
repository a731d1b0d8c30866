/**
 * Decides which aggregates a field offers, by what the field measures: the type of amounts of money, references and
 * enumerations says so, and the tag `@measures` of any other number. No other field is aggregated: an average of a
 * version or a number of distinct descriptions means nothing. Deviations and variances are not offered.
 */
import type { PgCodec } from "postgraphile/@dataplan/pg";
import { aggregatesOf, type Aggregate } from "../schema/measures.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileBuild {
    interface BehaviorStrings {
      "resource:groupedAggregates:having": true;
    }
  }
  namespace GraphileConfig {
    interface Plugins {
      AggregatesPlugin: true;
    }
  }
}

/** A column of a table, or a function that computes a field. */
type Entity =
  | { type: "attribute"; codec: PgCodec; attributeName: string }
  | { type: "computedAttribute"; resource: AnyType };

function aggregatesOfEntity(entity: Entity): readonly Aggregate[] {
  if (entity.type === "computedAttribute")
    return aggregatesOf(entity.resource.codec, entity.resource.extensions?.tags);
  const attribute = (entity.codec.attributes as AnyType)[entity.attributeName];
  return aggregatesOf(attribute.codec, attribute.extensions?.tags);
}

export const AggregatesPlugin: GraphileConfig.Plugin = {
  name: "AggregatesPlugin",
  version: "1.0.0",
  schema: {
    // Belongs to the plugin for conditions on groups, which is disabled.
    behaviorRegistry: {
      add: {
        "resource:groupedAggregates:having": {
          description: "Conditions on the groups of a connection",
          entities: ["pgResource"],
        },
      },
    },
    hooks: {
      build: {
        after: ["aggregates"],
        callback(build) {
          const offered: readonly string[] = ["sum", "average", "min", "max", "distinctCount"];
          build.pgAggregateSpecs = build
            .pgAggregateSpecs!.filter(({ id }: AnyType) => offered.includes(id))
            .map((spec: AnyType) => ({
              ...spec,
              shouldApplyToEntity: (entity: Entity) => aggregatesOfEntity(entity).includes(spec.id),
            }));
          return build;
        },
      },
    },
  },
};
