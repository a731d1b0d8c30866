/** The GraphQL configuration: base preset, companions, transport, our plugins, what is exposed. */
import { PgAggregatesPreset } from "@graphile/pg-aggregates";
import { PgSimplifyInflectionPreset } from "@graphile/simplify-inflection";
import type { IncomingMessage } from "node:http";
import type { Pool } from "pg";
import { makePgService } from "postgraphile/adaptors/pg";
import { PostGraphileAmberPreset } from "postgraphile/presets/amber";
import type { Claims } from "../database/claims.ts";
import { pgSettings, replaceSettings } from "../database/claims.ts";
import { deviceOf } from "../auth/device.ts";
import type { LoginTokens } from "../auth/loginToken.ts";
import { hashPassword, provePassword, type TransformContext } from "../operations/inputs/passwords.ts";
import { freshTotpSecret, proveSecondFactor } from "../operations/inputs/secondFactor.ts";
import { proveRefreshToken } from "../operations/inputs/refreshTokens.ts";
import type { MismatchListener } from "../compiled/compiledQueries.ts";
import { withCheck } from "../database/tokenCheck.ts";
import { serviceDeadlines } from "../database/deadlines.ts";
import { makeFusedAdaptor } from "../database/fusedAdaptor.ts";
import { withinShare } from "../database/orderedPool.ts";
import { transportPreset } from "../http/transportPreset.ts";
import { idempotencyFacts } from "../http/idempotencyFacts.ts";
import { userAgentOf } from "../http/requestFacts.ts";
import { claimsOf, requestState, type RequestState } from "../http/requestState.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { withWork } from "../admission/operationWork.ts";
import { partyOf } from "../admission/party.ts";
import { acceptedLanguage } from "../messages/language.ts";
import type { EvaluateConditions } from "../operations/effects.ts";
import type { ArgumentTransform } from "../operations/inputFields.ts";
import type { FileAddresses } from "../files/addresses.ts";
import type { Files } from "../files/files.ts";
import type { EventArchives } from "../archives/index.ts";
import { uploadTransforms } from "../operations/inputs/uploadTransforms.ts";
import { IntrospectionPlugin } from "../plugins/IntrospectionPlugin.ts";
import { AggregatesPlugin } from "../plugins/AggregatesPlugin.ts";
import { BehaviorCachePlugin } from "../plugins/BehaviorCachePlugin.ts";
import { BehaviorsPlugin } from "../plugins/BehaviorsPlugin.ts";
import { DescriptionsPlugin } from "../plugins/DescriptionsPlugin.ts";
import { DryRunPlugin } from "../plugins/DryRunPlugin.ts";
import { EnumTablesPlugin } from "../plugins/EnumTablesPlugin.ts";
import { EventArchivesPlugin } from "../plugins/EventArchivesPlugin.ts";
import { EventSubjectPlugin } from "../plugins/EventSubjectPlugin.ts";
import { FilesPlugin } from "../plugins/FilesPlugin.ts";
import { GroupingPlugin } from "../plugins/GroupingPlugin.ts";
import { LeadOrBuyerPlugin } from "../plugins/LeadOrBuyerPlugin.ts";
import { MaskedTablesPlugin } from "../plugins/MaskedTablesPlugin.ts";
import { JoinsPlugin } from "../plugins/JoinsPlugin.ts";
import { ListsPlugin } from "../plugins/ListsPlugin.ts";
import { NamingPlugin } from "../plugins/NamingPlugin.ts";
import { NearestCityPlugin } from "../plugins/NearestCityPlugin.ts";
import { NestedConnectionsPlugin } from "../plugins/NestedConnectionsPlugin.ts";
import { OperationsPlugin } from "../plugins/OperationsPlugin.ts";
import { OutputShapesPlugin } from "../plugins/OutputShapesPlugin.ts";
import { PermissionsPlugin } from "../plugins/PermissionsPlugin.ts";
import { PortfolioConnectionsPlugin } from "../plugins/PortfolioConnectionsPlugin.ts";
import { PublicQueriesPlugin } from "../plugins/PublicQueriesPlugin.ts";
import { RecordByIdPlugin } from "../plugins/RecordByIdPlugin.ts";
import { RecordNodesPlugin } from "../plugins/RecordNodesPlugin.ts";
import { ofConnections, ResourceSearchPlugin } from "../plugins/ResourceSearchPlugin.ts";
import { ScalarsPlugin } from "../plugins/ScalarsPlugin.ts";
import { SearchPlugin } from "../plugins/SearchPlugin.ts";
import { SubscriptionsPlugin } from "../plugins/SubscriptionsPlugin.ts";
import type { Subscriptions } from "../live/subscriptions.ts";
import { SignedTextsPlugin } from "../plugins/SignedTextsPlugin.ts";
import { SignInPlugin } from "../plugins/SignInPlugin.ts";
import { LocalizedTextsPlugin } from "../plugins/LocalizedTextsPlugin.ts";
import type { IntegrationTransforms } from "../operations/inputs/integrationTransforms.ts";
import { proveSigningCode } from "../operations/inputs/codes.ts";
import type { PaymentTransforms } from "../operations/inputs/paymentTransforms.ts";
import type { ViewerPlace } from "../providers/location/viewerPlace.ts";
import type { Seal } from "../secrets/seal.ts";
import { traceparent } from "../tracing/spans.ts";
import type { WebhookTransforms } from "../operations/inputs/webhookTransforms.ts";

declare global {
  namespace Grafast {
    interface Context {
      claims: Claims;
      /** Whether there is a token. Plans that read nothing else about the viewer are compiled; see src/compiled. */
      isSignedIn: boolean;
      ip: string | undefined;
      /** The header `User-Agent`. */
      userAgent?: string | undefined;
      /** Implementations of the tag @transform. */
      argumentTransforms: Record<string, ArgumentTransform>;
      /** Locates a viewer; if omitted, locations are unknown. */
      viewerPlace?: ViewerPlace | undefined;
      /** Reads the checksums of files that the request has sent. */
      sentFiles?: string[];
      /** The language of messages in the answer; English if omitted. */
      language?: RequestState["language"];
    }
  }
}

export interface PresetOptions {
  /** Connections of plat_authenticator. */
  pool: Pool;
  signLoginToken: LoginTokens["sign"];
  signFileAddress: FileAddresses["sign"];
  files: Files;
  /** Reads the content of archived events; if omitted, there is none. */
  eventArchives?: EventArchives;
  /** Seals secrets. */
  seal: Seal;
  webhookTransforms: WebhookTransforms;
  /** Checks the parts of a workflow definition that SQL cannot parse. */
  workflowChecks: ArgumentTransform;
  paymentTransforms: PaymentTransforms;
  draftTransforms: Record<"composeLeadEmail", ArgumentTransform>;
  integrationTransforms: IntegrationTransforms;
  /** The queue of operations for a connection; if omitted, there is no fair share. */
  connections?: FairSemaphore;
  /** Bytes for documents with their plans. */
  documentBytes?: number;
  /** Milliseconds for which other requests wait after an introspection query. */
  introspectionHoldMs?: number;
  /** See PlatOptions of QueryLimitsPlugin. */
  compileAtOnce?: boolean;
  onMismatch?: MismatchListener;
  /** How statements are sent; fused by default. The benchmarks compare it with the stock adaptor. */
  adaptor?: ReturnType<typeof makeFusedAdaptor>;
  /** Locates a viewer; if omitted, locations are unknown. */
  viewerPlace?: ViewerPlace;
  /** See PlatOptions of DryRunPlugin; if omitted, dry runs report workflows without evaluating their conditions. */
  evaluateConditions?: EvaluateConditions;
  /** Opens subscriptions for a request; if omitted, there are none. */
  subscriptionsOf?: (request: IncomingMessage) => Subscriptions;
}

/** Settings of a transaction that acts for the viewer of a request. */
export function viewerSettings(request: IncomingMessage): Record<string, string> {
  const { ip } = request as { ip?: string };
  const language = acceptedLanguage(request.headers["accept-language"]);
  const userAgent = userAgentOf(request);
  return pgSettings(claimsOf(request) as Claims, {
    requestId: requestState(request).id,
    channel: "API",
    ...(ip ? { ip } : {}),
    language,
    traceparent: traceparent(),
    ...(userAgent ? { userAgent } : {}),
  });
}

/** The settings of an operation, for its plan or its statement. If its token turns out to have changed, they are updated in place. */
export function settingsOf(request: IncomingMessage): Record<string, string> {
  const state = requestState(request);
  const { tokenCheck } = state;
  const settings = withCheck(
    withWork(viewerSettings(request), state.work),
    tokenCheck?.isCarried ? tokenCheck : undefined,
  );
  if (tokenCheck)
    tokenCheck.onRenewed = (claims) => {
      state.claims = claims;
      replaceSettings(settings, viewerSettings(request));
    };
  return settings;
}

/** In the order in which they are applied. */
const plugins: GraphileConfig.Plugin[] = [
  IntrospectionPlugin,
  EnumTablesPlugin,
  BehaviorCachePlugin,
  ResourceSearchPlugin,
  NamingPlugin,
  BehaviorsPlugin,
  ScalarsPlugin,
  SignedTextsPlugin,
  FilesPlugin,
  AggregatesPlugin,
  GroupingPlugin,
  MaskedTablesPlugin,
  JoinsPlugin,
  ListsPlugin,
  NestedConnectionsPlugin,
  PortfolioConnectionsPlugin,
  RecordNodesPlugin,
  RecordByIdPlugin,
  OperationsPlugin,
  DryRunPlugin,
  EventSubjectPlugin,
  EventArchivesPlugin,
  LeadOrBuyerPlugin,
  DescriptionsPlugin,
  OutputShapesPlugin,
  PermissionsPlugin,
  SignInPlugin,
  NearestCityPlugin,
  SearchPlugin,
  LocalizedTextsPlugin,
  PublicQueriesPlugin,
  SubscriptionsPlugin,
];

/** Plugins of the stack that ours replace. */
const disablePlugins: (keyof GraphileConfig.Plugins)[] = [
  // Replaced by IntrospectionPlugin.
  "PgIntrospectionPlugin",
  // Replaced by EnumTablesPlugin.
  "PgEnumTablesPlugin",
  // Ids are not encoded: replaced by RecordNodesPlugin.
  "NodePlugin",
  "QueryQueryPlugin",
  // ListsPlugin replaces the stock conditions and orders.
  "PgIndexBehaviorsPlugin",
  "PgConditionArgumentPlugin",
  "PgConditionCustomFieldsPlugin",
  "PgConnectionArgOrderByPlugin",
  "PgConnectionArgOrderByDefaultValuePlugin",
  "PgOrderAllAttributesPlugin",
  "PgOrderByPrimaryKeyPlugin",
  "PgOrderCustomFieldsPlugin",
  "PgAggregatesOrderByAggregatesPlugin",
  "PgAggregatesFilterRelationalAggregatesPlugin",
  // Groups are few, and the answer has their aggregates.
  "PgAggregatesAddHavingAggregateTypesPlugin",
];

/** The implementations of the tag @transform. */
function argumentTransformsOf({
  pool,
  connections,
  seal,
  files,
  webhookTransforms,
  workflowChecks,
  paymentTransforms,
  draftTransforms,
  integrationTransforms,
}: PresetOptions): Record<string, ArgumentTransform> {
  const withPool =
    (transform: (value: string, context: TransformContext) => Promise<string>): ArgumentTransform =>
    (value, { context, ...details }) =>
      transform(value as string, {
        ...details,
        pool: withinShare(pool, connections, partyOf(context.claims.userId, context.ip)),
        claims: context.claims,
        ip: context.ip,
      });
  return {
    hashPassword: withPool(hashPassword),
    provePassword: withPool(provePassword),
    proveRefreshToken: withPool(proveRefreshToken),
    proveSecondFactor: withPool(proveSecondFactor(seal)),
    freshTotpSecret: freshTotpSecret(seal),
    requestingDevice: (_value, { context }) => deviceOf(context.userAgent),
    ...uploadTransforms(files),
    ...webhookTransforms,
    workflowChecks,
    ...paymentTransforms,
    ...draftTransforms,
    ...integrationTransforms,
    proveSigningCode,
  };
}

/** The viewer of a request. */
function contextOf(
  request: IncomingMessage,
  { viewerPlace, subscriptionsOf, eventArchives }: PresetOptions,
  argumentTransforms: Record<string, ArgumentTransform>,
): Partial<Grafast.Context> {
  const claims = claimsOf(request) as Claims;
  return {
    claims,
    isSignedIn: claims.userId !== null,
    ip: (request as { ip?: string }).ip,
    userAgent: request.headers["user-agent"],
    argumentTransforms,
    viewerPlace,
    eventArchives,
    live: subscriptionsOf?.(request),
    repeats: idempotencyFacts(request),
    sentFiles: requestState(request).sentFiles,
    language: requestState(request).language,
    pgSettings: settingsOf(request),
  };
}

/**
 * The preset of the API; `pool` is also used for introspection. The viewer is part of the request context, so that the schema only depends
 * on the database and the code.
 */
export function createPreset(options: PresetOptions): GraphileConfig.Preset {
  const { pool, connections } = options;
  const adaptor =
    options.adaptor ?? makeFusedAdaptor({ deadlines: serviceDeadlines, ...(connections && { connections }) });
  const argumentTransforms = argumentTransformsOf(options);
  return {
    extends: [
      PostGraphileAmberPreset,
      PgSimplifyInflectionPreset,
      { ...PgAggregatesPreset, plugins: PgAggregatesPreset.plugins?.map(ofConnections) },
      transportPreset,
    ],
    plugins,
    disablePlugins,
    pgServices: [
      {
        ...makePgService({
          pool,
          schemas: ["app_public"],
          pubsub: false,
          pgSettingsForIntrospection: { role: "plat_user" },
        }),
        adaptor,
      },
    ],
    plat: {
      signLoginToken: options.signLoginToken,
      signFileAddress: options.signFileAddress,
      documentBytes: options.documentBytes,
      introspectionHoldMs: options.introspectionHoldMs,
      compileAtOnce: options.compileAtOnce,
      onMismatch: options.onMismatch,
      evaluateConditions: options.evaluateConditions,
    },
    grafast: {
      context: ({ expressv4 }) => (expressv4 ? contextOf(expressv4.req, options, argumentTransforms) : {}),
    },
    gather: { pgStrictFunctions: true },
    schema: {
      dontSwallowErrors: true,
      sortExport: true,
      pgForbidSetofFunctionsToReturnNull: true,
      pgOmitListSuffix: true,
      // Operations replace the stock mutations.
      defaultBehavior: "+list +connection -resource:insert -resource:update -resource:delete -node",
    },
  };
}
