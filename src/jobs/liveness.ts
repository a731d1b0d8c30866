/**
 * Whether workers live. Each says so by a lock on a connection of its own, which ends with the process; what a dead one held
 * is freed, at the start of another and every few seconds, rather than after the four hours that the job runner waits.
 */
import { Client } from "pg";
import type { Logger } from "../log.ts";

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
  let line: Client | undefined;
  let workerId: string | undefined;
  let ended = false;

  async function free(client: Client, everywhere: boolean): Promise<void> {
    const { rows } = await client.query<{ freed: number }>(
      "select app_private.free_jobs_of_dead_workers($1) as freed",
      [everywhere],
    );
    if (rows[0]!.freed > 0) log.warn({ jobs: rows[0]!.freed }, "A worker died; its jobs are free again.");
  }

  async function connect(): Promise<Client> {
    const client = new Client({ connectionString, application_name: "plat-worker-line", keepAlive: true });
    const lost = () => {
      if (line === client) line = undefined;
    };
    client.on("error", (error) => {
      if (!ended) log.warn({ err: error }, "The line that says that this worker lives broke.");
      lost();
    });
    client.on("end", lost);
    await client.connect();
    // A machine that vanished without a word is noticed within half a minute.
    await client.query(
      "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3",
    );
    if (workerId) await client.query("select app_private.worker_begins($1)", [workerId]);
    line = client;
    return client;
  }

  let looking: Promise<void> | undefined;
  const look = () => {
    looking ??= (async () => free(line ?? (await connect()), false))()
      .catch((error: unknown) => {
        if (!ended) log.warn({ err: error }, "Dead workers could not be looked for; they are in a moment.");
      })
      .finally(() => (looking = undefined));
  };

  await free(await connect(), true);
  const timer = setInterval(look, lookEveryMs);
  return {
    begin(id) {
      workerId = id;
      // Where the line is broken, the next look says it.
      line?.query("select app_private.worker_begins($1)", [id]).catch(() => {});
    },
    async end() {
      ended = true;
      clearInterval(timer);
      await looking;
      if (line && workerId)
        await line.query("select app_private.worker_ends($1)", [workerId]).catch(() => {});
      await line?.end();
    },
  };
}
