/**
 * PERF: the stock plugin reads each of about a hundred tables of enumerations with a separate statement, one after the
 * other. This replacement reads all of them with one statement. It also marks the values of the tag `@notAvailable`.
 */
import { withPgClientFromPgService } from "postgraphile/@dataplan/pg";
import { PgEnumTablesPlugin } from "postgraphile/graphile-build-pg";
import { escapeIdentifier, escapeLiteral } from "pg";
import { tagTexts } from "../schema/codecNames.ts";
import type { AnyResource } from "../schema/recordTables.ts";
import type { AnyType } from "../schema/stackTypes.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      EnumTablesPlugin: true;
    }
  }
}

type Gather = NonNullable<typeof PgEnumTablesPlugin.gather>;
type Rows = Record<string, unknown>[];
interface Info {
  resolvedPreset: GraphileConfig.ResolvedPreset;
  helpers: Pick<GraphileConfig.GatherHelpers, "pgIntrospection">;
  /** New for each schema. */
  state: { rowsOfTables?: Promise<Map<string, Rows>> };
}

const stock = PgEnumTablesPlugin.gather as Required<Gather>;

/** The rows of all tables tagged `@enum`, by the id of the table. */
async function readTables(
  { resolvedPreset, helpers }: Info,
  serviceName: string,
): Promise<Map<string, Rows>> {
  const classes = await helpers.pgIntrospection.getClasses(serviceName);
  const reads = classes
    .filter((pgClass) => pgClass.getTags().enum !== undefined)
    .map((pgClass) => {
      const { _id: id } = pgClass;
      const table = [pgClass.getNamespace()!.nspname, pgClass.relname].map(escapeIdentifier).join(".");
      return `select ${escapeLiteral(id)} as id, (select json_agg(r) from (select * from ${table}) r) as rows`;
    });
  const pgService = resolvedPreset.pgServices!.find(({ name }) => name === serviceName)!;
  const { rows } = await withPgClientFromPgService(
    pgService,
    pgService.pgSettingsForIntrospection ?? null,
    (client) => client.query<{ id: string; rows: Rows | null }>({ text: reads.join("\nunion all\n") }),
  );
  return new Map(rows.map(({ id, rows: found }) => [id, found ?? []]));
}

/** By build. PERF: all tables are searched once per schema instead of once per enumeration. */
const marksByName = new WeakMap<object, Map<string, string[]>>();

/** The values that the enumeration of this GraphQL name declares with `@notAvailable`. */
function notAvailable(build: GraphileBuild.Build, enumName: string): string[] {
  let marks = marksByName.get(build.input);
  if (!marks) {
    marks = new Map();
    for (const { extensions } of Object.values(build.pgResources) as AnyResource[]) {
      const name = extensions?.tags?.enumName;
      if (typeof name === "string" && !marks.has(name))
        marks.set(
          name,
          tagTexts(extensions?.tags, "notAvailable").flatMap((values) => values.split(" ")),
        );
    }
    marksByName.set(build.input, marks);
  }
  return marks.get(enumName) ?? [];
}

export const EnumTablesPlugin: GraphileConfig.Plugin = {
  ...PgEnumTablesPlugin,
  name: "EnumTablesPlugin",
  provides: ["PgEnumTablesPlugin"],
  gather: {
    ...stock,
    helpers: {
      ...stock.helpers,
      async getIntrospectionData(info: Info, serviceName: string, pgClass: AnyType) {
        const { _id: id } = pgClass;
        const tables = await (info.state.rowsOfTables ??= readTables(info, serviceName));
        const rows = tables.get(id);
        if (!rows) throw new Error(`The table ${pgClass.relname} has an enumeration, but no tag @enum.`);
        return rows;
      },
    },
  } as unknown as Gather,
  schema: {
    ...PgEnumTablesPlugin.schema,
    hooks: {
      GraphQLEnumType_values(values, build, { Self }) {
        const marked = notAvailable(build, Self.name);
        if (marked.length === 0) return values;
        return Object.fromEntries(
          Object.entries(values).map(([name, config]) => [
            name,
            marked.includes(config.value)
              ? { ...config, extensions: { ...config.extensions, notAvailable: true } }
              : config,
          ]),
        );
      },
    },
  },
};
