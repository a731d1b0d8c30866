/**
 * Whether workers live. Each says so by a lock on a connection of its own, which ends with the process; what a dead one held
 * is freed, at the start of another and every few seconds, rather than after the four hours that the job runner waits.
 */
import type { Client } from "pg";
import { openCallLine } from "../database/callLine.ts";
import type { Logger } from "../log.ts";
import { onCall } from "../onCall.ts";

export interface LivenessOptions {
  /** The owner's. */
  connectionString: string;
  log: Logger;
  /** How often it looks for dead workers. */
  lookEveryMs?: number;
}

export interface Liveness {
  /** Says from now on that the worker lives. */
  begin(workerId: string): void;
  /** After the worker has stopped: what it still holds, if anything, is free from now on. */
  end(): Promise<void>;
}

/** Frees what dead workers left, and goes on doing so; throws where the database cannot be reached. */
export async function watchWorkers(options: LivenessOptions): Promise<Liveness> {
  const { connectionString, log, lookEveryMs = 10_000 } = options;
  let workerId: string | undefined;
  let ended = false;

  async function free(client: Client, everywhere: boolean): Promise<void> {
    const { rows } = await client.query<{ freed: number }>(
      "select app_private.free_jobs_of_dead_workers($1) as freed",
      [everywhere],
    );
    if (rows[0]!.freed > 0) log.warn({ jobs: rows[0]!.freed }, "A worker died; its jobs are free again.");
  }

  const line = await openCallLine({
    connectionString,
    applicationName: "plat-worker-line",
    log,
    async connected(client) {
      if (workerId) await client.query("select app_private.worker_begins($1)", [workerId]);
      else await free(client, true);
    },
  });
  const looker = onCall(
    async () => {
      const current = line.current();
      if (current) await free(current.client, false);
    },
    (error) => {
      if (!ended) log.warn({ err: error }, "Dead workers could not be looked for; they are in a moment.");
    },
  );
  line.keep(looker.call, lookEveryMs);
  const say = async (what: string) => {
    // Where the line is broken, the next one says it.
    if (workerId)
      await line
        .current()
        ?.client.query(`select app_private.${what}($1)`, [workerId])
        .catch(() => {});
  };
  return {
    begin(id) {
      workerId = id;
      void say("worker_begins");
    },
    async end() {
      ended = true;
      await line.rest();
      await looker.idle();
      await say("worker_ends");
      await line.end();
    },
  };
}
