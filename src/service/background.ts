/** The database connections for the background work of a process; docs/operating.md has their numbers. */
import { organizationParty } from "../admission/party.ts";
import type { Config } from "../base/config.ts";
import type { Logger } from "../base/log.ts";
import { ListenConnection } from "../database/listener.ts";
import type { Database } from "../database/open.ts";
import { makeWorkPool } from "../database/pool.ts";
import { sharesOf, type WorkPool } from "../database/workConnections.ts";

/** Connections shared by the engines. Each engine leaves at least one to the others. */
const OF_ENGINES = 4;
/** Minimum connections of the job runner: it listens on one of them. */
const LEAST_OF_JOBS = 3;
const LEAST_OF_VIEWERS = 2;

export interface Background {
  /** The connection for notifications. It also shows other processes that this one is alive. */
  listenConnection: ListenConnection;
  /**
   * Connections of the engines (webhooks, workflows, triggers, notifications, integrations) and of the payment
   * sandbox.
   */
  engines: WorkPool;
  /** Connections for jobs, from their own pool: jobs mostly wait for other services, so that fewer connections than jobs suffice. */
  ofJobs: number;
  /** Connections of plat_authenticator, to read as a member of an organization. */
  viewersOf: (organizationId: string) => WorkPool;
  end(): Promise<void>;
}

/** @throws if the database is unreachable */
export async function openBackground(
  { workerUrl: connectionString, authenticatorUrl }: Pick<Database, "workerUrl" | "authenticatorUrl">,
  { workerConcurrency }: Pick<Config, "workerConcurrency">,
  log: Logger,
): Promise<Background> {
  const listenConnection = await ListenConnection.open({
    connectionString,
    applicationName: "plat-worker-line",
    log,
  });
  const engines = makeWorkPool({
    connectionString,
    max: OF_ENGINES,
    applicationName: "plat-worker",
    log,
  });
  const ofViewers = Math.max(LEAST_OF_VIEWERS, Math.floor(workerConcurrency / 2));
  const viewers = makeWorkPool({
    connectionString: authenticatorUrl,
    max: ofViewers,
    applicationName: "plat-worker-viewers",
    log,
  });
  const shares = sharesOf(viewers, ofViewers);
  return {
    listenConnection,
    engines,
    ofJobs: Math.max(LEAST_OF_JOBS, workerConcurrency - 1),
    viewersOf: (organizationId) => shares(organizationParty(organizationId)),
    async end() {
      await listenConnection.end();
      await Promise.all([engines.end(), viewers.end()]);
    },
  };
}
