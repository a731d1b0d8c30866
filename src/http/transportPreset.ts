import { CodedErrorsPlugin, maskError } from "./plugins/CodedErrorsPlugin.ts";
import { QueryLimitsPlugin } from "./plugins/QueryLimitsPlugin.ts";
import { SchemaPrivacyPlugin } from "./plugins/SchemaPrivacyPlugin.ts";
import { bodyLimits } from "./body.ts";
import { PLANNING_MS } from "../limits/planningTime.ts";

/** The transport's part of the preset, on which `createApp` relies. */
export const transportPreset: GraphileConfig.Preset = {
  plugins: [QueryLimitsPlugin, SchemaPrivacyPlugin, CodedErrorsPlugin],
  grafserv: {
    graphqlPath: "/graphql",
    graphqlOverGET: false,
    graphiql: false,
    graphiqlOnGraphQLGET: false,
    websockets: false,
    allowedRequestContentTypes: ["application/json"],
    maxRequestLength: bodyLimits.signedIn,
    // QueryLimitsPlugin caches documents by weight.
    parseAndValidateCacheSize: 0,
    maskError,
  },
  grafast: { explain: false, timeouts: { planning: PLANNING_MS } },
};
