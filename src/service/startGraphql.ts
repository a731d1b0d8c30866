/** The API on a database: its connections, its schema, and what the transport needs. */
import type { GraphQLSchema } from "postgraphile/graphql";
import { postgraphile, type PostGraphileInstance } from "postgraphile";
import { createAuthenticator, type Authenticated, type Authenticator } from "../auth/authenticate.ts";
import { createLoginTokens, type LoginTokenKey } from "../auth/loginToken.ts";
import { DataVersions } from "../database/dataVersions.ts";
import { ReadsOf } from "../database/statementReads.ts";
import { asViewer } from "../database/asViewer.ts";
import { statementPlan } from "../database/statementPlan.ts";
import { partyOf } from "../admission/party.ts";
import type { StatementsDeps } from "../http/operationStatements.ts";
import { EntityTags } from "../compiled/entityTags.ts";
import type { MismatchListener } from "../compiled/compiledQueries.ts";
import { serviceDeadlines } from "../database/deadlines.ts";
import { makeFusedAdaptor } from "../database/fusedAdaptor.ts";
import type { Compute } from "../compute/computePool.ts";
import { loadConstraintMessages } from "../database/constraintMessages.ts";
import type { OrderedPool } from "../database/orderedPool.ts";
import { makePool } from "../database/pool.ts";
import type { AppDeps } from "../http/app.ts";
import { draftTransforms } from "../operations/inputs/draftTransforms.ts";
import { createFileAddresses, type FileAddresses } from "../files/addresses.ts";
import { incomingFolder } from "../providers/files/incoming.ts";
import { EventArchives } from "../archives/index.ts";
import { createFiles, type Files } from "../files/files.ts";
import { filePage } from "../http/filePage.ts";
import { requestState } from "../http/requestState.ts";
import { isMultipart } from "../http/uploads.ts";
import { uploadPlaces } from "../http/uploadPlaces.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import * as admission from "../admission/semaphores.ts";
import type { Logger } from "../base/log.ts";
import type { IncomingMessage } from "node:http";
import type { Request } from "express";
import type { PoolClient } from "pg";
import type { ListenConnection } from "../database/listener.ts";
import { createLive, type Live } from "../live/live.ts";
import { subscriptions } from "../live/subscriptions.ts";
import type { StreamLimits } from "../base/providerOptions.ts";
import { compiledTransport } from "./compiledTransport.ts";
import { createPreset, viewerSettings, type PresetOptions } from "./graphqlPreset.ts";
import { documentLookups, cachedDocument, documentCache } from "../http/plugins/QueryLimitsPlugin.ts";
import { createDraftProvider, type DraftProvider } from "../providers/drafts/index.ts";
import type { FileStore } from "../providers/files/index.ts";
import { paymentsWebhook } from "../http/paymentsWebhook.ts";
import { messagesWebhook } from "../http/messagesWebhook.ts";
import { SchemaUsage } from "../http/schemaUsage.ts";
import { anonymous, type Claims } from "../database/claims.ts";
import { Replicas } from "../database/replicas.ts";
import { Positions } from "../database/position.ts";
import { paymentTransforms } from "../operations/inputs/paymentTransforms.ts";
import { noProcessor, type PaymentProcessor } from "../providers/payments/index.ts";
import type { SmsProvider } from "../providers/sms/index.ts";
import { ownDocuments } from "../http/ownDocuments.ts";
import { createTrustedDocuments } from "../http/trustedDocuments.ts";
import { trackers } from "../http/trackers.ts";
import { unsubscribePage } from "../http/unsubscribe.ts";
import { confirmPage } from "../http/confirm.ts";
import { signingWebhook } from "../http/signingWebhook.ts";
import { signingPage } from "../http/signing.ts";
import { stopEmailChangePage } from "../http/stopEmailChange.ts";
import { calendars } from "../http/calendars.ts";
import { consentPage } from "../http/consent.ts";
import { createIntegrations, type Integrations } from "../integrations/integrations.ts";
import type { OauthClientOptions } from "../base/providerOptions.ts";
import { integrationTransforms } from "../operations/inputs/integrationTransforms.ts";
import { createLocationProvider, type LocationProvider } from "../providers/location/index.ts";
import { createViewerPlace } from "../providers/location/viewerPlace.ts";
import type { Seal } from "../secrets/seal.ts";
import { webhookTransforms } from "../operations/inputs/webhookTransforms.ts";
import { workflowChecks } from "../operations/inputs/definition.ts";

/** The instance that serves a schema, as returned by `postgraphile`. */
export type GraphqlInstance = Pick<PostGraphileInstance, "createServ" | "getSchema" | "release">;

export interface GraphqlOptions {
  /** The connection string of the API, for plat_authenticator. */
  authenticatorUrl: string;
  /** The connection string of a pooler, if any, for operations and pages. */
  poolerUrl?: string | undefined;
  /** The connection strings of standbys that answer queries. */
  replicaUrls?: readonly string[];
  /** Whether statements have names, so that the server keeps them prepared; true by default. */
  preparedStatements?: boolean;
  /** The listening connection of the process; if omitted, event streams open their own. */
  listenConnection?: ListenConnection | undefined;
  poolSize: number;
  /** Bytes for documents with their plans. */
  documentBytes?: number;
  /** Milliseconds for which other requests wait after an introspection query; see admission.ts. */
  introspectionHoldMs?: number;
  /** See SchemaUsageOptions. */
  usageDelayMs?: number | undefined;
  /** See PlatOptions of QueryLimitsPlugin; a mismatch is logged by default. */
  compileAtOnce?: boolean;
  onMismatch?: MismatchListener;
  jwtKeys: readonly LoginTokenKey[];
  /** Seals secrets. */
  seal: Seal;
  /** Whether unregistered documents are refused; false by default. */
  trustedDocumentsOnly?: boolean;
  /** Whether the URLs of webhooks may lead to this machine; false by default. */
  loopbackWebhooks?: boolean;
  /** The provider of user consent; without it, applications that require consent are unavailable. */
  oauth?: OauthClientOptions | undefined;
  /** The author of drafts; the embedded composer by default. */
  drafts?: DraftProvider;
  /** The store of file contents. */
  fileStore: FileStore;
  /** Uploads are buffered in its folder `incoming`. */
  dataDir: string;
  /** Maximum bytes of files per organization, and per user; limited only by free space by default. */
  fileQuota?: number;
  /** The URL of the service for those of files; without a trailing slash. */
  baseUrl: string;
  /** Locates viewers and cities; the embedded databases by default. */
  location?: LocationProvider;
  /** Without one, operations that require it are refused. */
  payments?: PaymentProcessor;
  /** The provider whose notifications are accepted, if it sends any. */
  sms?: SmsProvider;
  /** Parses user-written text. */
  compute: Compute;
  log: Logger;
  /** Maximum number of event streams; see streamLimits.ts. */
  streamLimits?: StreamLimits;
  /** Creates the instance of the preset: with a schema that it builds, or with an existing one. */
  instance?: (preset: GraphileConfig.Preset) => GraphqlInstance;
  /** See PresetOptions. */
  adaptor?: PresetOptions["adaptor"];
}

export interface Graphql {
  /** The options of `createApp` that are not configuration. */
  transport: Pick<
    AppDeps,
    | "pgl"
    | "authenticate"
    | "authenticateKnown"
    | "findCompiled"
    | "answerCompiled"
    | "tagOf"
    | "noteUse"
    | "constraintMessages"
    | "positions"
    | "numbers"
    | "uploads"
    | "documents"
    | "filePage"
    | "trackers"
    | "unsubscribe"
    | "confirm"
    | "signing"
    | "stopEmailChange"
    | "paymentsWebhook"
    | "messagesWebhook"
    | "signingWebhook"
    | "calendars"
    | "consent"
    | "mcp"
    | "schema"
    | "languageOfUser"
    | "statements"
  > & { live: Live };
  /** Ends event streams, and refuses new ones. */
  drain(): void;
  isReachable(): Promise<boolean>;
  release(): Promise<void>;
}

/** The signing keys of a schema. */
export const signersOf = ({ jwtKeys, baseUrl }: Pick<GraphqlOptions, "jwtKeys" | "baseUrl">) => ({
  signLoginToken: createLoginTokens(jwtKeys).sign,
  signFileAddress: createFileAddresses(jwtKeys, baseUrl).sign,
});

const numbersOf = ({ totalCount: total, idleCount: idle, waiting }: OrderedPool) => ({
  total,
  idle,
  waiting,
});

const numbersOfAll = (pools: Record<string, OrderedPool>) =>
  Object.fromEntries(Object.entries(pools).map(([name, pool]) => [name, numbersOf(pool)]));

const admissionNumbers = () => ({
  operations: admission.operations.numbers,
  large_operations: admission.largeOperations.numbers,
  introspections: admission.introspections.numbers,
  password_hashes: admission.passwordHashes.numbers,
  authentications: admission.authentications.numbers,
  page_requests: admission.pageRequests.numbers,
});

/** Connections of operations, and of pages: the latter serve visitors, who must not prevent the API from authenticating requests. */
function openPools({
  authenticatorUrl,
  poolerUrl,
  replicaUrls = [],
  preparedStatements = true,
  poolSize,
  log,
}: Pick<
  GraphqlOptions,
  "authenticatorUrl" | "poolerUrl" | "replicaUrls" | "preparedStatements" | "poolSize" | "log"
>) {
  const open = (max: number, applicationName: string) =>
    makePool({
      connectionString: poolerUrl ?? authenticatorUrl,
      byPooler: poolerUrl !== undefined,
      preparedStatements,
      max,
      applicationName,
      genericPlans: true,
      onError: (error) =>
        log.warn(
          { event: "database.connection_lost", err: error },
          "A database connection was lost; the pool opens another one.",
        ),
    });
  const ofPages = poolSize > 4 ? 2 : 1;
  const pool = open(poolSize - ofPages, "plat-api");
  const pages = open(ofPages, "plat-pages");
  const replicas =
    replicaUrls.length > 0
      ? new Replicas(replicaUrls, authenticatorUrl, {
          log,
          preparedStatements,
          max: poolSize,
          applicationName: "plat-reads",
          genericPlans: true,
        })
      : undefined;
  const end = async () => void (await Promise.all([pool.end(), pages.end(), replicas?.end()]));
  const ofPools = () => ({
    pools: numbersOfAll({ api: pool, pages, ...replicas?.pools }),
    reads: replicas?.reads,
  });
  return { pool, pages, ofPages, replicas, end, ofPools };
}

/** The text of a registered document. */
async function documentText(pool: OrderedPool, id: string): Promise<string | undefined> {
  const { rows } = await pool.query({
    name: "document_text",
    text: "select app_private.document_text($1) as text",
    values: [id],
  });
  return rows[0]?.text ?? undefined;
}

/** Authenticates requests, and records the keys of their tokens in the request state. */
function authenticateWith(authenticator: Authenticator): Pick<AppDeps, "authenticate" | "authenticateKnown"> {
  const note = (request: IncomingMessage, { claims, check, facts }: Authenticated): Claims => {
    const state = requestState(request);
    state.tokenCheck = check;
    state.tokenFacts = facts;
    if (check) check.onRenewed = (renewed) => (state.claims = renewed);
    return claims;
  };
  return {
    // Files are received before there is a statement.
    authenticate: async (authorization, request) =>
      note(request, await authenticator(authorization, request.ip, !isMultipart(request))),
    authenticateKnown: (authorization, request) => {
      const found = authenticator.known(authorization, request.ip, request.socket);
      return found && note(request, found);
    },
  };
}

/** The parts of the options, and of what was created from them, that the schema and its plans use. */
function presetOptionsOf(
  {
    documentBytes,
    introspectionHoldMs,
    compileAtOnce = false,
    onMismatch = (document) =>
      log.error(
        { event: "graphql.compiled_mismatch", document: document.slice(0, 2_000) },
        "A compiled query returned another result than its plan; using the plan from now on.",
      ),
    jwtKeys,
    seal,
    loopbackWebhooks = false,
    drafts = createDraftProvider(),
    baseUrl,
    location = createLocationProvider({}),
    payments = noProcessor,
    fileStore,
    log,
    compute,
  }: GraphqlOptions,
  {
    pool,
    connections,
    files,
    live,
    integrations,
  }: {
    pool: OrderedPool;
    connections: FairSemaphore;
    files: Files;
    live: Live;
    integrations: Integrations;
  },
): PresetOptions {
  return {
    pool,
    connections,
    ...(documentBytes !== undefined && { documentBytes }),
    ...(introspectionHoldMs !== undefined && { introspectionHoldMs }),
    compileAtOnce,
    onMismatch,
    ...signersOf({ jwtKeys, baseUrl }),
    files,
    seal,
    webhookTransforms: webhookTransforms(seal, { loopback: loopbackWebhooks }),
    eventArchives: new EventArchives(fileStore, log),
    workflowChecks: workflowChecks({ loopback: loopbackWebhooks }, compute),
    paymentTransforms: paymentTransforms(payments, pool),
    draftTransforms: draftTransforms(drafts, compute, log),
    integrationTransforms: integrationTransforms(integrations),
    evaluateConditions: async (organizationId, items) =>
      (await compute.run(`dry runs of ${organizationId}`, "condition", null, items)).map(
        (result) => "value" in result && result.value,
      ),
    subscriptionsOf: (request) =>
      subscriptions(live, {
        bearer: () => live.bearer(request.headers.authorization, (request as Request).ip),
        ip: (request as Request).ip,
        ended: (error) => (requestState(request).subscriptionError = error),
        opened: (close) => {
          const { res: response } = request as Request;
          if (response!.closed) close();
          else response!.once("close", close);
        },
      }),
    viewerPlace: createViewerPlace(pool, location, log, connections),
  };
}

/** What is served beside the API. */
function pagesOf(
  { fileStore, payments = noProcessor, sms, baseUrl, compute }: GraphqlOptions,
  {
    pool,
    pages,
    addresses,
    integrations,
  }: { pool: OrderedPool; pages: OrderedPool; addresses: FileAddresses; integrations: Integrations },
) {
  return {
    filePage: filePage({ store: fileStore, addresses, pool: pages }),
    trackers: trackers(pages),
    unsubscribe: unsubscribePage(pages),
    confirm: confirmPage(pages),
    signing: signingPage({ pool: pages, addresses }),
    stopEmailChange: stopEmailChangePage(pages),
    paymentsWebhook: paymentsWebhook(payments, pool),
    ...(sms?.readNotice && { messagesWebhook: messagesWebhook(sms.readNotice, pool) }),
    signingWebhook: signingWebhook(integrations, pool),
    calendars: calendars(pages, baseUrl, compute),
    consent: consentPage(integrations),
  };
}

/** Reads the statements of operations, within the sender's share of the connections. */
function statementsWith(pool: OrderedPool, connections: FairSemaphore): StatementsDeps {
  const asSender = <T>(request: Request, work: (client: PoolClient) => Promise<T>) =>
    connections.run(partyOf(requestState(request).claims?.userId ?? null, request.ip), () =>
      asViewer(pool, { ...viewerSettings(request), transaction_read_only: "on" }, work),
    );
  return {
    isOperator: (request) =>
      asSender(request, async (client) => {
        const { rows } = await client.query("select app_hidden.is_operator() as is_operator");
        return rows[0].is_operator === true;
      }),
    plan: (request, statement) => asSender(request, (client) => statementPlan(client, statement)),
  };
}

/** The parts of the API besides its schema. */
function startParts(
  {
    authenticatorUrl,
    listenConnection,
    jwtKeys,
    seal,
    loopbackWebhooks = false,
    oauth,
    fileStore,
    dataDir,
    fileQuota = Number.MAX_SAFE_INTEGER,
    baseUrl,
    log,
    compute,
    streamLimits = { total: 2_000, ofOrganization: 1_000, ofViewer: 50, ofAddress: 500 },
  }: GraphqlOptions,
  { pool, pages, connections }: { pool: OrderedPool; pages: OrderedPool; connections: FairSemaphore },
) {
  const files = createFiles({
    store: fileStore,
    pool,
    connections,
    incomingFolder: incomingFolder(dataDir),
    quota: fileQuota,
  });
  const authenticator = createAuthenticator({ pool, keys: jwtKeys });
  const addresses = createFileAddresses(jwtKeys, baseUrl);
  const live = createLive({
    connectionString: authenticatorUrl,
    listenConnection,
    authenticator,
    pool: pages,
    limits: streamLimits,
    log,
  });
  const integrations = createIntegrations({
    seal,
    policy: { loopback: loopbackWebhooks },
    compute,
    baseUrl,
    oauth,
    query: (text, values) => pool.query(text, values),
  });
  return { files, authenticator, addresses, live, integrations };
}

/** Records who uses which parts of the schema. */
function recordUsage(
  { log, usageDelayMs: delayMs }: GraphqlOptions,
  schema: GraphQLSchema,
  pool: OrderedPool,
) {
  const usage = new SchemaUsage({ schema, pool, log, delayMs });
  const note: AppDeps["noteUse"] = (request) => {
    const known = cachedDocument(schema, (request.body as { query: string }).query);
    if (known) usage.note(known, (requestState(request).claims ?? anonymous) as Claims);
  };
  return { note, write: () => usage.write() };
}

/** Connects, reads the schema of the database and builds that of GraphQL. */
export async function startGraphql(options: GraphqlOptions): Promise<Graphql> {
  const {
    poolSize,
    jwtKeys,
    trustedDocumentsOnly = false,
    oauth,
    baseUrl,
    instance = postgraphile,
    adaptor,
  } = options;
  const { pool, pages, ofPages, replicas, end, ofPools } = openPools(options);
  try {
    const connections = admission.connectionShares(poolSize, poolSize - ofPages - 1);
    const parts = startParts(options, { pool, pages, connections });
    const { files, authenticator, addresses, live, integrations } = parts;
    const fused =
      adaptor ??
      makeFusedAdaptor({
        deadlines: serviceDeadlines,
        connections,
        replicas,
        ...(options.preparedStatements === false && { preparedStatements: 0 }),
      });
    const pgl = instance(
      createPreset({
        ...presetOptionsOf(options, { pool, connections, ...parts }),
        adaptor: fused,
      }),
    );
    const withPgClient = fused.createWithPgClient({ pool });
    const [constraintMessages, schema, system] = await Promise.all([
      loadConstraintMessages(pool),
      pgl.getSchema(),
      pool.query("select system_identifier::text as id from pg_catalog.pg_control_system()"),
      pool.query("select app_private.note_configured_apps($1)", [oauth?.issuer ?? null]),
    ]);
    const positions = new Positions(system.rows[0]!.id);
    replicas?.start(system.rows[0]!.id);
    const usage = recordUsage(options, schema, pages);
    const entityTags = new EntityTags(() => ReadsOf.load(pool), new DataVersions(pool));
    return {
      transport: {
        pgl,
        ...authenticateWith(authenticator),
        ...compiledTransport({ schema, withPgClient, positions, entityTags }),
        noteUse: usage.note,
        constraintMessages,
        positions,
        uploads: {
          files,
          places: async (operations) => uploadPlaces(await pgl.getSchema(), operations),
          settings: viewerSettings,
        },
        documents: createTrustedDocuments({
          find: (id) => documentText(pool, id),
          own: ownDocuments,
          only: trustedDocumentsOnly,
        }),
        ...pagesOf(options, { pool, pages, addresses, integrations }),
        schema: () => pgl.getSchema(),
        // If only registered documents are allowed, nothing else is executed, not even for agents.
        ...(!trustedDocumentsOnly && {
          mcp: {
            authenticate: createAuthenticator({ pool, keys: jwtKeys, audience: "MCP" }),
            schema: () => pgl.getSchema(),
            secret: jwtKeys[0]!.secret,
            baseUrl,
          },
        }),
        live,
        statements: statementsWith(pool, connections),
        languageOfUser: async (userId) =>
          (await pool.query("select app_private.language_of($1) as language", [userId])).rows[0]?.language,
        numbers: () => ({
          ...ofPools(),
          live: live.numbers,
          documents: { ...documentCache(schema), ...documentLookups },
          admission: { ...admissionNumbers(), connections: connections.numbers },
        }),
      },
      isReachable: async () => {
        await pool.query("select 1");
        return true;
      },
      drain: () => live.drain(),
      release: async () => {
        await live.stop();
        await usage.write();
        await pgl.release();
        await end();
      },
    };
  } catch (error) {
    await end();
    throw error;
  }
}
