/** The whole GraphQL policy on one page: base preset, companions, our plugins, behaviours. */
import { PgAggregatesPreset } from "@graphile/pg-aggregates";
import { PgSimplifyInflectionPreset } from "@graphile/simplify-inflection";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import { makePgService } from "postgraphile/adaptors/pg";
import { NamingPlugin } from "./plugins/NamingPlugin.ts";
import { BehaviorsPlugin } from "./plugins/BehaviorsPlugin.ts";
import { ListsPlugin } from "./plugins/ListsPlugin.ts";
import { OperationsPlugin } from "./plugins/OperationsPlugin.ts";
import { OutputShapesPlugin } from "./plugins/OutputShapesPlugin.ts";
import { RecordByIdPlugin } from "./plugins/RecordByIdPlugin.ts";
import { ScalarsPlugin } from "./plugins/ScalarsPlugin.ts";

export function createPreset(options: { connectionString: string }): GraphileConfig.Preset {
  return {
    extends: [PostGraphileAmberPreset, PgSimplifyInflectionPreset, PgAggregatesPreset],
    plugins: [NamingPlugin, BehaviorsPlugin, ScalarsPlugin, ListsPlugin, RecordByIdPlugin, OperationsPlugin, OutputShapesPlugin],
    disablePlugins: ["NodePlugin", "QueryQueryPlugin", "PgMutationCreatePlugin", "PgMutationUpdateDeletePlugin", "MutationPayloadQueryPlugin", "PgIndexBehaviorsPlugin", "PgConditionArgumentPlugin", "PgConditionCustomFieldsPlugin", "PgConnectionArgOrderByPlugin", "PgOrderAllAttributesPlugin", "PgOrderByPrimaryKeyPlugin", "PgOrderCustomFieldsPlugin", "PgConnectionArgOrderByDefaultValuePlugin", "PgAggregatesOrderByAggregatesPlugin", "PgAggregatesFilterRelationalAggregatesPlugin"],
    pgServices: [
      makePgService({
        connectionString: options.connectionString,
        schemas: ["app_public"],
        pgSettingsForIntrospection: { role: "plat_user" },
      }),
    ],
    gather: { pgStrictFunctions: true },
    schema: {
      dontSwallowErrors: true,
      pgForbidSetofFunctionsToReturnNull: true,
      pgOmitListSuffix: true,
      defaultBehavior: "+list +connection -resource:insert -resource:update -resource:delete -node",
      sortExport: true,
    },
  };
}
