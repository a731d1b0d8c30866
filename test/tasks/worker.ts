import { randomBytes } from "node:crypto";
import { EventEmitter } from "node:events";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Logger, runOnce, WorkerPreset, type WorkerEvents } from "graphile-worker";
import { Client } from "pg";
import PostalMime, { type Email } from "postal-mime";
import { createCompute } from "../../src/compute/computePool.ts";
import { makePool } from "../../src/database/pool.ts";
import { authenticatorUrl, workerUrl } from "../../src/database/roles.ts";
import { incomingFolder } from "../../src/providers/files/incoming.ts";
import { taskContext } from "../../src/jobs/context.ts";
import { createSeal } from "../../src/secrets/seal.ts";
import { createFileStore, type FileStore } from "../../src/providers/files/index.ts";
import { createMailProvider, type MailProvider } from "../../src/providers/mail/index.ts";
import type { OauthClientOptions } from "../../src/base/providerOptions.ts";
import { secretKeys } from "../harness/api.ts";
import { noProcessor, type PaymentProcessor } from "../../src/providers/payments/index.ts";
import { createSmsProvider, type SmsProvider } from "../../src/providers/sms/index.ts";
import { until } from "../harness/until.ts";

export interface Outbox {
  provider: MailProvider;
  /** Reads and removes the mails sent since the last call, oldest first. */
  take(): Promise<Email[]>;
  remove(): Promise<void>;
}

export async function createOutbox(): Promise<Outbox> {
  const dataDir = await mkdtemp(join(tmpdir(), `plat-outbox-${randomBytes(3).toString("hex")}-`));
  const folder = join(dataDir, "outbox");
  return {
    provider: createMailProvider({ dataDir, from: "Plat <no-reply@plat.example>" }),
    async take() {
      const names = await readdir(folder).catch(() => []);
      const mails: Email[] = [];
      for (const name of names.sort()) {
        mails.push(await PostalMime.parse(await readFile(join(folder, name))));
        await rm(join(folder, name));
      }
      return mails;
    },
    remove: () => rm(dataDir, { recursive: true, force: true }),
  };
}

/**
 * Executes the due jobs, with the service's own tasks and privileges, and returns the log of the job runner.
 * @param loginUrl of the login that migrates.
 */
export async function runJobs(
  loginUrl: string,
  mail: MailProvider,
  fileStore: FileStore = createFileStore({ dataDir: tmpdir() }),
  payments: PaymentProcessor = noProcessor,
  oauth?: OauthClientOptions,
  keys = secretKeys,
  unbound: readonly string[] = [],
  sms: SmsProvider = createSmsProvider({
    textMessages: "off",
    dataDir: tmpdir(),
    baseUrl: "https://plat.example",
  }),
): Promise<string[]> {
  const log: string[] = [];
  const viewers = makePool({ connectionString: authenticatorUrl(loginUrl), max: 2 });
  const connectionString = workerUrl(loginUrl);
  const jobs = makePool({ connectionString, max: 2 });
  const host = await (globalThis.platHost?.() ?? import("../harness/host.ts"));
  const seal = createSeal(keys, { unbound: new Set(unbound) });
  const compute = createCompute({ log: { warn() {} } });
  const events: WorkerEvents = new EventEmitter();
  const workers: string[] = [];
  events.on("pool:create", ({ workerPool }) => workers.push(workerPool.id));
  await runOnce({
    noHandleSignals: true,
    events,
    preset: {
      extends: [
        WorkerPreset,
        taskContext({
          mail,
          fileStore,
          payments,
          sms,
          seal,
          integrations: host.createIntegrations({
            seal,
            policy: { loopback: true },
            compute,
            baseUrl: "https://plat.example",
            oauth,
            query: (text, values) => jobs.query(text, values),
          }),
          incomingFolder: incomingFolder(tmpdir()),
          viewersOf: () => viewers,
          webUrl: "https://plat.example",
          operatorEmail: "operator@plat.example",
          serviceUrl: "https://plat.example",
        }),
      ],
      worker: {
        connectionString,
        taskDirectory: join(import.meta.dirname, "../../src/tasks"),
        logger: new Logger(() => (level, message) => {
          log.push(`${level} ${message}`);
        }),
      },
    },
  }).finally(() => Promise.all([viewers.end(), jobs.end(), compute.stop()]));
  await untilNoted(loginUrl, workers);
  return log;
}

/** The job runner does not wait until completions are recorded. */
async function untilNoted(connectionString: string, workers: string[]): Promise<void> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    const held = "select from graphile_worker._private_jobs where locked_by = any ($1)";
    await until(
      () => client.query(held, [workers]),
      ({ rowCount }) => rowCount === 0,
    );
  } finally {
    await client.end();
  }
}
