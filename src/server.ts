import { setTimeout as pause } from "node:timers/promises";
import { setFlagsFromString } from "node:v8";
import type { GraphQLSchema } from "postgraphile/graphql";
import { decideAddress, ownAddress } from "./http/address.ts";
import { loadJwtKeys, loadSeal } from "./auth/keys.ts";
import { servePart, startApiProcesses, takePart } from "./http/apiProcesses.ts";
import { announce } from "./service/banner.ts";
import { ConfigError, loadConfig } from "./base/config.ts";
import { prepareDataDir } from "./database/dataDir.ts";
import { createCompute } from "./compute/pool.ts";
import { requireDriver } from "./database/driver.ts";
import { migrate } from "./database/migrate.ts";
import { shareOf } from "./database/workConnections.ts";
import { openBackground } from "./service/background.ts";
import { requireOwnSessions } from "./database/ownSessions.ts";
import { openDatabase, requireMigrated } from "./database/open.ts";
import { requireLimited } from "./database/roles.ts";
import { logSlowStatements } from "./database/slowStatements.ts";
import { exitCodes } from "./base/exitCodes.ts";
import { demoSignIn, demoUser, loadDemo } from "./demo/index.ts";
import { demoPayments } from "./demo/payments.ts";
import { incomingFolder } from "./providers/files/incoming.ts";
import { removeLeftoversOfDead } from "./providers/files/leftovers.ts";
import { loadCertificate } from "./http/tlsCertificate.ts";
import { healthz, readyz } from "./http/health.ts";
import { openMonitoring } from "./http/monitoring.ts";
import { requireAddress, serve } from "./http/serve.ts";
import { taskContext } from "./jobs/context.ts";
import { createLog, type Logger } from "./base/log.ts";
import { createDraftProvider } from "./providers/drafts/index.ts";
import { createFileStore } from "./providers/files/index.ts";
import { createLocationProvider } from "./providers/location/index.ts";
import { createMailProvider } from "./providers/mail/index.ts";
import { createSmsProvider } from "./providers/sms/index.ts";
import { openPayments } from "./providers/payments/index.ts";
import { Readiness } from "./monitoring/readiness.ts";
import { reloadableApi } from "./service/reloadableApi.ts";
import { createIntegrations } from "./integrations/integrations.ts";
import { orderedShutdown } from "./service/shutdown.ts";
import { startDispatcher } from "./webhooks/dispatcher.ts";
import { readWork } from "./monitoring/readWork.ts";
import { startNotificationReader } from "./notifications/reader.ts";
import { keepFormerLinkKeys } from "./notifications/unsubscribeLinks.ts";
import { startWorker } from "./worker.ts";
import { startWorkflows } from "./workflows/runner.ts";
import { startTriggers } from "./workflows/triggers.ts";

/** Of what a stop may take: requests have less than half of it, so that jobs have the rest. */
const requestsShare = 0.4;

/** Of what a look at the readiness may take: a database that takes longer to answer says nothing new. */
const answerWithinMs = 1_500;

/** What follows the files of the schema while the service runs: in development. */
export type Follow = (running: {
  loginUrl: string;
  authenticatorUrl: string;
  log: Logger;
  /**
   * Has the API serve what the database holds now.
   * @param schema that of GraphQL, where it was built from another database that holds the same.
   */
  reload(schema?: Promise<GraphQLSchema>): Promise<void>;
  /** Builds the schema of GraphQL from a database. */
  buildSchema(authenticatorUrl: string): Promise<GraphQLSchema>;
}) => Promise<{ stop(): Promise<void> }>;

/**
 * Left alone, the heap grows to several times what is alive before it is collected: a minute of many plans or large answers
 * would take half a gigabyte more, and keep it. Not during the start, whose heap is nearly all alive: to look through it again
 * and again takes a tenth of the start.
 */
const keepHeapSmall = () => setFlagsFromString("--heap-growing-percent=30");

/**
 * The composition root, in reading order. What is added to `shutdown` last is stopped first.
 * @param follow where given, the migration that is being written is applied as well, and changes are followed.
 * @throws ConfigError before anything was started.
 */
export async function runService(argv: readonly string[], follow?: Follow): Promise<void> {
  const part = await takePart();
  const config = part?.config ?? (await decideAddress(loadConfig(process.env, argv)));
  const log = createLog(config.logLevel);
  const shutdown = orderedShutdown(log, config.stopDelayMs + config.stopTimeoutMs);
  const readiness = new Readiness();
  if (config.tracing) {
    // PERF: nobody else pays for loading it.
    const { startTracing } = await import("./tracing/tracing.ts");
    shutdown.add("traces", startTracing({ ...config.tracing, mode: config.mode }).stop);
  }
  if (config.slowStatementMs > 0) logSlowStatements(log, config.slowStatementMs);
  const { createMetrics } = await import("./http/metrics.ts");
  const metrics = createMetrics();
  const fail = (reason: string, exitCode: number) =>
    void shutdown.begin(reason, exitCode).catch(() => process.exit(exitCode));
  process.on("uncaughtException", (error) => {
    log.fatal({ event: "process.exception", err: error }, "An unexpected failure.");
    fail("failure", exitCodes.failed);
  });
  // What nobody waits for any more, such as a part of a job that has failed already: nothing else has to end for it.
  process.on("unhandledRejection", (error) => {
    metrics.strayRejections.inc();
    log.error({ event: "process.stray_rejection", err: error }, "A rejection was not handled.");
  });
  // Whoever has read the output may be gone, which is no reason to stop.
  for (const output of [process.stdout, process.stderr]) output.on("error", () => {});

  try {
    requireDriver();
    prepareDataDir(config.dataDir);
    const database = await openDatabase(config, log);
    shutdown.add("database", database.end);
    database.exited.then(() => fail("the embedded database ended", exitCodes.failed)).catch(() => {});
    if (!part && (config.mode === "all" || config.mode === "api")) await requireAddress(config);
    let monitoring: Awaited<ReturnType<typeof openMonitoring>>;
    // Tells until the end that the process is alive, and not ready.
    shutdown.add("monitoring", async () => monitoring?.close());

    if (config.databaseUrl) await requireOwnSessions("DATABASE_URL", config.databaseUrl);
    if (config.mode === "all" || config.mode === "migrate")
      await migrate(database.loginUrl, {
        authenticatorUrl: database.authenticatorUrl,
        workerUrl: database.workerUrl,
        logger: log,
        current: follow !== undefined,
      });
    const fileStore = createFileStore({
      s3: config.s3,
      dataDir: config.dataDir,
      archive: config.archive?.folder,
    });
    shutdown.add("files", fileStore.close);
    await removeLeftoversOfDead(incomingFolder(config.dataDir));
    const demo =
      config.demo && (config.mode === "all" || config.mode === "migrate")
        ? await loadDemo(database.ownerUrl, {
            store: fileStore,
            incomingFolder: incomingFolder(config.dataDir),
          })
        : "absent";
    if (demo === "loaded") log.info({ event: "demo.loaded" }, "The demo organization is loaded.");
    if (config.mode === "migrate") return await shutdown.begin("migrated", 0);
    await requireMigrated(database);
    if (config.authenticatorUrl) await requireLimited("AUTHENTICATOR_URL", config.authenticatorUrl);
    if (config.workerUrl) {
      await requireLimited("WORKER_URL", config.workerUrl);
      await requireOwnSessions("WORKER_URL", config.workerUrl);
    }
    let isMigrated = true;
    readiness.add("migrated", async () => {
      // A database that cannot be asked is not one that lacks something: the checks beside this one tell.
      const asked = database.missing().then(
        (missing) => (isMigrated = missing.length === 0),
        () => isMigrated,
      );
      const late = pause(answerWithinMs).then(() => isMigrated);
      return await Promise.race([asked, late]);
    });
    readiness.add("writes", database.takesChanges);
    const work = readWork(database.authenticatorUrl, log);
    shutdown.add("numbers of work", work.end);
    // Once for all processes of the API.
    if (!part) metrics.watchWork(work.read, log);

    const runsJobs = config.mode === "all" || config.mode === "worker";
    const background = runsJobs ? await openBackground(database, config, log) : undefined;
    if (background) shutdown.add("background connections", background.end);

    const payments = await openPayments({
      stripe: config.stripe,
      workerUrl: () => database.workerUrl,
      pool: background?.engines,
      endpoint: config.mode === "worker" ? undefined : `${ownAddress(config)}/webhooks/payments`,
      returnUrl: config.webUrl ?? config.baseUrl,
      serviceUrl: config.baseUrl,
      log,
    });
    shutdown.add("payments", payments.close);
    if (demo === "loaded" && !config.stripe) await demoPayments(database, payments.processor);
    const drafts = createDraftProvider(config.ai);
    const sms = createSmsProvider(config);

    const compute = createCompute({ log });
    const seal = await loadSeal(config, database.authenticatorUrl, log);

    if (background) {
      const mail = metrics.jobs.countMails(
        createMailProvider({ smtpUrl: config.smtpUrl, dataDir: config.dataDir, from: config.mailFrom }),
      );
      shutdown.add("mail", mail.close);
      const { operatorEmail, webUrl = config.baseUrl } = config;
      await keepFormerLinkKeys(database.ownerUrl, await loadJwtKeys(config));
      const { workerUrl: connectionString } = database;
      const { engines: pool, listenConnection } = background;
      const integrations = shareOf(pool, 1);
      const worker = await startWorker({
        connectionString,
        listenConnection,
        concurrency: config.workerConcurrency,
        connections: background.ofJobs,
        log,
        listen: metrics.jobs.listen,
        onFailure: (error) => {
          log.fatal(
            { event: "worker.failed", err: error },
            "This process cannot run jobs any more; exiting.",
          );
          fail("jobs cannot be run", exitCodes.unable);
        },
        presets: [
          taskContext({
            mail,
            fileStore,
            incomingFolder: incomingFolder(config.dataDir),
            viewersOf: background.viewersOf,
            payments: payments.processor,
            sms,
            seal,
            integrations: createIntegrations({
              seal,
              policy: { loopback: config.loopbackWebhooks },
              compute,
              baseUrl: config.baseUrl,
              oauth: config.oauth,
              query: (text, values) => integrations.query(text, values),
            }),
            webUrl,
            operatorEmail,
            serviceUrl: config.baseUrl,
          }),
        ],
      });
      shutdown.add("worker", worker.stop);
      readiness.add("worker", worker.isRunning);
      const connections = { connectionString, pool, listenConnection, log };
      const notifications = await startNotificationReader(connections);
      shutdown.add("notifications", () => notifications.stop());
      const sending = { ...connections, seal, loopback: config.loopbackWebhooks, compute };
      const dispatcher = await startDispatcher({ ...sending, delivered: metrics.jobs.delivered });
      shutdown.add("webhooks", () => dispatcher.stop());
      const workflows = await startWorkflows({ ...sending, drafts, sms });
      shutdown.add("workflows", () => workflows.stop());
      const triggers = await startTriggers(sending);
      shutdown.add("triggers", () => triggers.stop());
    }
    // Before those who wait for a computation: what they hold is given back.
    shutdown.add("computations", () => compute.stop());

    if (config.apiProcesses > 1 && config.mode !== "worker" && !follow) {
      // They find what is made once: the keys that are kept in the data folder, and the certificate.
      await Promise.all([loadJwtKeys(config), loadCertificate(config)]);
      const api = await startApiProcesses({
        entry: import.meta.filename,
        config: {
          ...config,
          mode: "api",
          apiProcesses: 1,
          demo: demo !== "absent",
          monitoring: "off",
          databaseUrl: database.loginUrl,
          authenticatorUrl: database.authenticatorUrl,
          workerUrl: config.workerUrl,
        },
        processes: config.apiProcesses,
        log,
      });
      shutdown.add("API processes", api.stop);
      readiness.add("API processes", api.isWhole);
      metrics.gather(api.metrics);
    } else if (config.mode === "all" || config.mode === "api") {
      // PERF: half of all that is loaded; workers, migrations and refused starts do without.
      const { signs, startGraphql } = await import("./service/startGraphql.ts");
      const { createApp } = await import("./http/app.ts");
      const pages = { "/healthz": healthz, "/readyz": readyz(readiness) };
      const options = {
        authenticatorUrl: database.authenticatorUrl,
        listenConnection: background?.listenConnection,
        poolSize: config.poolSize,
        documentBytes: config.documentBytes,
        streamLimits: config.streamLimits,
        jwtKeys: await loadJwtKeys(config),
        seal,
        trustedDocumentsOnly: config.trustedDocumentsOnly,
        loopbackWebhooks: config.loopbackWebhooks,
        oauth: config.oauth,
        drafts,
        fileStore,
        dataDir: config.dataDir,
        fileQuota: config.fileQuota,
        baseUrl: config.baseUrl,
        location: createLocationProvider(config),
        payments: payments.processor,
        sms,
        compute,
        log,
      };
      // A part is told what the first process found.
      const hasDemo = demo !== "absent" || (part !== undefined && config.demo);
      const portalDemo = hasDemo ? { demo: demoSignIn } : {};
      const { buildSchema, serving } = await import("./service/schemaAlone.ts");
      const api = await reloadableApi(async (schema?: Promise<GraphQLSchema>) => {
        const graphql = await startGraphql({ ...options, ...(schema && { instance: serving(schema) }) });
        return {
          graphql,
          app: createApp({ config, log, pages, metrics, ...portalDemo, ...graphql.transport }),
        };
      });
      shutdown.add("GraphQL", api.release);
      readiness.add("database", api.isReachable);

      let isCertificateRead = true;
      readiness.warn("certificate cannot be read", () => !isCertificateRead);
      const reloaded = (expiresAt: number | undefined) => {
        isCertificateRead = expiresAt !== undefined;
        metrics.certificate(expiresAt);
      };
      const listener = await serve(api.handler, config, { log, part, reloaded });
      shutdown.add("HTTP", () => listener.close(config.stopTimeoutMs * requestsShare));
      // Their clients make them anew elsewhere, or here once the service is back.
      shutdown.add("event streams", api.drain);
      // Whoever sends requests here sees that the process is not ready any more, and has time to.
      shutdown.add("new requests", async ({ exitCode }) => {
        listener.drain();
        if (exitCode === exitCodes.stopped) await pause(config.stopDelayMs);
      });
      if (follow) {
        const { loginUrl, authenticatorUrl } = database;
        const following = await follow({
          loginUrl,
          authenticatorUrl,
          log,
          reload: api.reload,
          buildSchema: (url) => buildSchema(url, signs(options)),
        });
        shutdown.add("following the schema", following.stop);
      }
    }

    monitoring = await openMonitoring(config, { metrics, readiness, log });
    shutdown.add("readiness", () => readiness.stop());
    if (!follow) keepHeapSmall();
    if (part) servePart(metrics.values);
    else announce(config, log, demo === "absent" ? undefined : demoUser);
  } catch (error) {
    log.debug({ event: "service.start_failed", err: error }, "The start failed.");
    console.error((error as Error).message);
    await shutdown.begin("the start failed", exitCodes.failed);
  }
}

if (import.meta.main)
  try {
    await runService(process.argv.slice(2));
  } catch (error) {
    if (!(error instanceof ConfigError)) throw error;
    console.error(error.message);
    process.exitCode = 1;
  }
