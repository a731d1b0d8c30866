import { CodedErrorsPlugin, maskError } from "./plugins/CodedErrorsPlugin.ts";
import { QueryLimitsPlugin } from "./plugins/QueryLimitsPlugin.ts";
import { SchemaPrivacyPlugin } from "./plugins/SchemaPrivacyPlugin.ts";
import { explorerHeaders, explorerQuery } from "./explorerExamples.ts";
import { bodyLimits } from "./body.ts";

// Its type asks for every member, its documentation for none.
type ExplorerConfig = NonNullable<NonNullable<GraphileConfig.Preset["ruru"]>["clientConfig"]>;

/** The transport's part of the preset; `createApp` counts on it. */
export const transportPreset: GraphileConfig.Preset = {
  plugins: [QueryLimitsPlugin, SchemaPrivacyPlugin, CodedErrorsPlugin],
  grafserv: {
    graphqlPath: "/graphql",
    graphqlOverGET: false,
    // The application decides by its settings whether the page is reachable.
    graphiql: true,
    graphiqlOnGraphQLGET: false,
    graphiqlPath: "/",
    graphiqlStaticPath: "/ruru-static/",
    websockets: false,
    allowedRequestContentTypes: ["application/json"],
    maxRequestLength: bodyLimits.signedIn,
    // QueryLimitsPlugin keeps documents by weight.
    parseAndValidateCacheSize: 0,
    maskError,
  },
  // A wide operation within the limits can take a second to plan the first time; this ends what takes longer (ms).
  grafast: { explain: false, timeouts: { planning: 3_000 } },
  ruru: {
    clientConfig: {
      defaultQuery: explorerQuery,
      defaultHeaders: explorerHeaders,
      isHeadersEditorEnabled: true,
    } as ExplorerConfig,
  },
};
