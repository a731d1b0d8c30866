/** The background work of a process: jobs, and the engines. */
import { loadJwtKeys } from "./auth/authKeys.ts";
import { exitCodes } from "./base/exitCodes.ts";
import { EventArchives } from "./archives/index.ts";
import { shareOf } from "./database/workConnections.ts";
import { createIntegrations } from "./integrations/integrations.ts";
import { taskContext, type TaskContext } from "./jobs/context.ts";
import { startNotificationReader } from "./notifications/reader.ts";
import { keepFormerLinkKeys } from "./notifications/unsubscribeLinks.ts";
import { incomingFolder } from "./providers/files/incoming.ts";
import { createMailProvider } from "./providers/mail/index.ts";
import { startDispatcher } from "./webhooks/dispatcher.ts";
import { startWorker } from "./worker.ts";
import { startWorkflows } from "./workflows/runner.ts";
import { startTriggers } from "./workflows/triggers.ts";
import type { Background } from "./service/background.ts";
import type { Data } from "./service/data.ts";
import type { Providers } from "./service/providers.ts";
import type { Start } from "./service/start.ts";

interface Given {
  data: Data;
  background: Background;
  providers: Providers;
}

/** Starts jobs and engines. They stop in reverse order. */
export async function startBackground(start: Start, given: Given): Promise<void> {
  const { database } = given.data;
  await keepFormerLinkKeys(database.ownerUrl, await loadJwtKeys(start.config));
  await startJobs(start, given);
  await startEngines(start, given);
}

async function startJobs(start: Start, given: Given): Promise<void> {
  const { config, log, shutdown, readiness, metrics, fail } = start;
  const { data, background } = given;
  const context = openTaskContext(start, given);
  const worker = await startWorker({
    connectionString: data.database.workerUrl,
    listenConnection: background.listenConnection,
    concurrency: config.workerConcurrency,
    connections: background.ofJobs,
    log,
    listen: metrics.jobs.listen,
    onFailure: (error) => {
      log.fatal({ event: "worker.failed", err: error }, "This process can no longer run jobs; exiting.");
      fail("jobs cannot be run", exitCodes.unable);
    },
    presets: [taskContext(context)],
  });
  shutdown.add("worker", () => worker.stop());
  readiness.add("worker", () => worker.isRunning());
}

/** The services of the process that tasks use. */
function openTaskContext(
  { config, shutdown, metrics }: Start,
  { data, background, providers }: Given,
): TaskContext {
  const { baseUrl, operatorEmail, webUrl = baseUrl } = config;
  const { payments, sms, seal, compute } = providers;
  const mail = metrics.jobs.countMails(
    createMailProvider({ smtpUrl: config.smtpUrl, dataDir: config.dataDir, from: config.mailFrom }),
  );
  shutdown.add("mail", mail.close);
  const connections = shareOf(background.engines, 1);
  return {
    mail,
    fileStore: data.fileStore,
    incomingFolder: incomingFolder(config.dataDir),
    viewersOf: background.viewersOf,
    payments,
    sms,
    seal,
    integrations: createIntegrations({
      seal,
      policy: { loopback: config.loopbackWebhooks },
      compute,
      baseUrl,
      oauth: config.oauth,
      query: (text, values) => connections.query(text, values),
    }),
    webUrl,
    operatorEmail,
    serviceUrl: baseUrl,
  };
}

async function startEngines({ config, log, shutdown, metrics }: Start, given: Given): Promise<void> {
  const { engines: pool, listenConnection } = given.background;
  const { drafts, sms, seal, compute } = given.providers;
  const connections = {
    connectionString: given.data.database.workerUrl,
    pool,
    listenConnection,
    log,
  };
  const notifications = await startNotificationReader(connections);
  shutdown.add("notifications", () => notifications.stop());
  const sending = { ...connections, seal, loopback: config.loopbackWebhooks, compute };
  const dispatcher = await startDispatcher({
    ...sending,
    eventArchives: new EventArchives(given.data.fileStore, log),
    delivered: metrics.jobs.delivered,
  });
  shutdown.add("webhooks", () => dispatcher.stop());
  const workflows = await startWorkflows({ ...sending, drafts, sms });
  shutdown.add("workflows", () => workflows.stop());
  const triggers = await startTriggers(sending);
  shutdown.add("triggers", () => triggers.stop());
}
