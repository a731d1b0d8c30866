/**
 * House policy on what is shown:
 * - root lists and connections for tables tagged @portfolio only; lists, no connections, elsewhere
 * - aggregates on those connections only
 * - a column tagged @masked is written through operations but read through a computed column of the same name
 * - an attribute can be ordered by when an index holds it, partial indexes included
 */
declare global {
  namespace GraphileConfig {
    interface Plugins {
      BehaviorsPlugin: true;
    }
  }
}

const masked = [
  "-attribute:select",
  "-attribute:filterBy",
  "-attribute:orderBy",
  "-attribute:aggregate",
  "-attribute:groupBy",
  "-attribute:havingBy",
] as const;

export const BehaviorsPlugin: GraphileConfig.Plugin = {
  name: "BehaviorsPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      // Stock says no to partial indexes; ours all leave out deleted rows, which no list shows.
      pgCodecs_attribute(_info, { pgAttribute, attribute }) {
        const indexes = pgAttribute.getClass()?.getIndexes() ?? [];
        attribute.extensions = Object.assign(Object.create(null), attribute.extensions, {
          isIndexed: indexes.some((index) =>
            index.getKeys().some((key) => key?.attname === pgAttribute.attname),
          ),
        });
      },
    },
  },
  schema: {
    entityBehavior: {
      pgCodecAttribute: {
        override(behavior, [codec, attributeName]) {
          const attribute = codec.attributes[attributeName]!;
          const result: any[] = [behavior];
          if (attribute.extensions?.tags?.masked) result.push(...masked);
          if (attribute.extensions?.isIndexed === false) result.push("-orderBy");
          return result;
        },
      },
      pgResource: {
        override(behavior, resource): any[] {
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
