/** The API of a process: served by itself, or by several processes that it starts. */
import { setTimeout as pause } from "node:timers/promises";
import type { GraphQLSchema } from "postgraphile/graphql";
import { loadJwtKeys } from "../auth/authKeys.ts";
import { exitCodes } from "../base/exitCodes.ts";
import type { Logger } from "../base/log.ts";
import type { ListenConnection } from "../database/listener.ts";
import { demoSignIn } from "../demo/index.ts";
import { startApiProcesses } from "../http/apiProcesses.ts";
import { healthz, readyz } from "../http/health.ts";
import { serve } from "../http/serve.ts";
import { loadCertificate } from "../http/tlsCertificate.ts";
import { createLocationProvider } from "../providers/location/index.ts";
import type { Data } from "./data.ts";
import type { Providers } from "./providers.ts";
import { reloadableApi, type ReloadableApi } from "./reloadableApi.ts";
import type { Start } from "./start.ts";
import type { GraphqlOptions } from "./startGraphql.ts";

/** Share of the shutdown time: requests get less than half, so that jobs have the rest. */
const requestsShare = 0.4;

/** Watches the files of the schema while the service runs, in development. */
export type Follow = (running: {
  loginUrl: string;
  authenticatorUrl: string;
  log: Logger;
  /**
   * Makes the API serve the current schema of the database.
   * @param schema a GraphQL schema built from another database with the same catalog.
   */
  reload(schema?: Promise<GraphQLSchema>): Promise<void>;
  /** Builds the schema of GraphQL from a database. */
  buildSchema(authenticatorUrl: string): Promise<GraphQLSchema>;
}) => Promise<{ stop(): Promise<void> }>;

interface Given {
  data: Data;
  providers: Providers;
  /** The listening connection of the process, if any. */
  listenConnection: ListenConnection | undefined;
}

/** Serves the API with several processes; things created once are passed to them. */
export async function startParts(
  { config, log, shutdown, readiness, metrics }: Start,
  { database, demo }: Data,
  entry: string,
): Promise<void> {
  // They find what was created once: the keys in the data folder, and the certificate.
  await Promise.all([loadJwtKeys(config), loadCertificate(config)]);
  const api = await startApiProcesses({
    entry,
    config: {
      ...config,
      mode: "api",
      apiProcesses: 1,
      demo: demo !== "absent",
      monitoring: "off",
      databaseUrl: database.loginUrl,
      authenticatorUrl: database.poolerUrl ?? database.authenticatorUrl,
      workerUrl: config.workerUrl,
    },
    processes: config.apiProcesses,
    log,
  });
  shutdown.add("API processes", api.stop);
  readiness.add("API processes", api.isWhole);
  metrics.gather(api.metrics);
}

/** Serves the API in this process. */
export async function startApi(start: Start, given: Given, follow: Follow | undefined): Promise<void> {
  const { config, log, shutdown, readiness } = start;
  const options = await graphqlOptions(start, given);
  const { signersOf, buildSchema, makeApi } = await loadApi();
  const api = await reloadableApi(makeApi(start, given.data, options));
  shutdown.add("GraphQL", api.release);
  readiness.add("database", api.isReachable);
  await listen(start, api);
  if (!follow) return;
  const { loginUrl, authenticatorUrl } = given.data.database;
  const following = await follow({
    loginUrl,
    authenticatorUrl,
    log,
    reload: api.reload,
    buildSchema: (url) => buildSchema(url, signersOf({ jwtKeys: options.jwtKeys, baseUrl: config.baseUrl })),
  });
  shutdown.add("following the schema", following.stop);
}

async function graphqlOptions(
  { config, log }: Start,
  { data, providers, listenConnection }: Given,
): Promise<GraphqlOptions> {
  return {
    authenticatorUrl: data.database.authenticatorUrl,
    poolerUrl: data.database.poolerUrl,
    replicaUrls: config.readDatabaseUrls,
    preparedStatements: config.preparedStatements,
    listenConnection,
    poolSize: config.poolSize,
    documentBytes: config.documentBytes,
    streamLimits: config.streamLimits,
    jwtKeys: await loadJwtKeys(config),
    trustedDocumentsOnly: config.trustedDocumentsOnly,
    loopbackWebhooks: config.loopbackWebhooks,
    oauth: config.oauth,
    fileStore: data.fileStore,
    dataDir: config.dataDir,
    fileQuota: config.fileQuota,
    baseUrl: config.baseUrl,
    location: createLocationProvider(config),
    log,
    ...providers,
  };
}

/** PERF: half of all code; workers, migrations and failed starts do not load it. */
async function loadApi() {
  const { signersOf, startGraphql } = await import("./startGraphql.ts");
  const { createApp } = await import("../http/app.ts");
  const { buildSchema, servedSchema } = await import("./schemaOnly.ts");
  const makeApi =
    ({ config, part, log, readiness, metrics }: Start, { demo }: Data, options: GraphqlOptions) =>
    async (schema?: Promise<GraphQLSchema>) => {
      const graphql = await startGraphql({ ...options, ...(schema && { instance: servedSchema(schema) }) });
      const pages = { "/healthz": healthz, "/readyz": readyz(readiness) };
      // A child process receives what the first process found.
      const hasDemo = demo !== "absent" || (part !== undefined && config.demo);
      const portal = hasDemo ? { demo: demoSignIn } : {};
      return {
        graphql,
        app: createApp({ config, log, pages, metrics, ...portal, ...graphql.transport }),
      };
    };
  return { signersOf, buildSchema, makeApi };
}

/** Accepts connections, and completes running requests when the process stops. */
async function listen(
  { config, part, log, shutdown, readiness, metrics }: Start,
  api: ReloadableApi<Promise<GraphQLSchema>>,
): Promise<void> {
  let isCertificateRead = true;
  readiness.warn("certificate cannot be read", () => !isCertificateRead);
  const reloaded = (expiresAt: number | undefined) => {
    isCertificateRead = expiresAt !== undefined;
    metrics.certificate(expiresAt);
  };
  const listener = await serve(api.handler, config, { log, part, reloaded });
  shutdown.add("HTTP", () => listener.close(config.stopTimeoutMs * requestsShare));
  // Clients reopen them elsewhere, or here once the service is back.
  shutdown.add("event streams", api.drain);
  // Gives the load balancer time to see that the process is no longer ready.
  shutdown.add("new requests", async ({ exitCode }) => {
    listener.drain();
    if (exitCode === exitCodes.stopped) await pause(config.stopDelayMs);
  });
}
