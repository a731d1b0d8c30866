/**
 * Whether workers live. Each says so by a lock on a connection of its own, which ends with the process; what a dead one held
 * is freed, at the start of another and every few seconds, rather than after the four hours that the job runner waits. A connection
 * that broke is made anew at once, and others wait a while for it. A job during which its process died twice is set aside before
 * anybody takes it again: it would end the next process as well.
 */
import { openListener, type Line, type ListenConnection, type Listener } from "../database/listener.ts";
import type { Logger } from "../base/log.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";

export interface LivenessOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** The connection of the process that listens; one of its own where omitted. */
  listenConnection?: ListenConnection | undefined;
  log: Logger;
  /** How often it looks for dead workers. */
  lookEveryMs?: number;
}

export interface Liveness {
  /** Says from now on that the worker lives; the one before it, if any, has stopped. */
  begin(workerId: string): void;
  /** The jobs that this process works on, or has worked on without that being noted yet. */
  readonly held: Set<string>;
  /** An answer to the question for a job was lost: the database may have locked one that nobody works on. */
  noteLostAnswer(): void;
  /** Whether the database knows that this process lives. */
  isConnected(): boolean;
  /**
   * Whether a process died during a job of that key; with a ticket where it is set aside. Keys count, because the clock adds such a
   * job again and again.
   */
  suspicion(key: string): { ticket: string | null } | undefined;
  /** The tasks, by the ids of the job runner, that operators have paused. */
  pausedTasks(): ReadonlySet<number>;
  /** After the worker has stopped: what it still holds, if anything, is free from now on. */
  end(): Promise<void>;
}

interface Held {
  job_id: string;
  task: string;
  organization_id: string | null;
  deaths: number;
  /** Null for a job that is free again. */
  ticket: string | null;
}

/** Milliseconds by which the clock of the database has to go back until that counts: clocks are corrected by less all the time. */
const setBackMs = 60_000;

/** Milliseconds for which it is looked for jobs of lost answers: as long as the database takes to notice, and two looks. */
const LOST_MS = 120_000;

/** Frees what dead workers left, and goes on doing so; throws where the database cannot be reached. */
export async function watchWorkers(options: LivenessOptions): Promise<Liveness> {
  const liveness = new WorkerLiveness(options.log);
  await liveness.start(options);
  return liveness;
}

class WorkerLiveness implements Liveness {
  readonly held = new Set<string>();
  readonly #log: Logger;
  readonly #looker = coalesceCalls(
    () => this.#look(),
    (error) => {
      if (!this.#isEnded)
        this.#log.warn(
          { event: "worker.look_failed", err: error },
          "Looking for dead workers failed; retrying.",
        );
    },
  );
  #listener: Listener | undefined;
  #workerId: string | undefined;
  #isEnded = false;
  #deadly: ReadonlyMap<string, string | null> = new Map();
  #paused: ReadonlySet<number> = new Set();
  /** Until when it is looked whether there are jobs of lost answers. */
  #lostUntil = 0;
  /** Runners of this process that have stopped, until the database has heard of it. */
  readonly #stopped = new Set<string>();
  #begun: Promise<void> | undefined;
  /** Milliseconds from the clock of this process that only goes forward to that of the database, when it was looked at last. */
  #clockOffset: number | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  async start({ connectionString, listenConnection, lookEveryMs = 10_000 }: LivenessOptions): Promise<void> {
    const own = { connectionString, applicationName: "plat-worker-line", log: this.#log };
    this.#listener = await openListener(listenConnection, own, {
      // Jobs are held by the id of the job runner.
      listensOnly: true,
      listen: { channel: "plat_paused_tasks", called: this.#looker.call },
      connected: (line) => this.#connected(line),
    });
    this.#listener.keep(this.#looker.call, lookEveryMs);
  }

  suspicion(key: string): { ticket: string | null } | undefined {
    return this.#deadly.has(key) ? { ticket: this.#deadly.get(key)! } : undefined;
  }

  begin(id: string): void {
    if (this.#workerId) this.#stopped.add(this.#workerId);
    this.#workerId = id;
    // Those of the runner before are free with it; one that it never noted would be taken for under way for ever.
    this.held.clear();
    this.#begun = this.#say(async (line) => {
      await line.query("select app_private.worker_begins($1)", [id]);
      await this.#sayStopped(line);
    });
  }

  noteLostAnswer(): void {
    this.#lostUntil = performance.now() + LOST_MS;
  }

  pausedTasks(): ReadonlySet<number> {
    return this.#paused;
  }

  isConnected(): boolean {
    return this.#listener?.current() !== undefined;
  }

  async end(): Promise<void> {
    this.#isEnded = true;
    this.#listener?.rest();
    await this.#looker.idle();
    await this.#begun;
    if (this.#workerId) this.#stopped.add(this.#workerId);
    await this.#say((line) => this.#sayStopped(line));
    await this.#listener?.end();
  }

  /** Says on a new connection which worker lives. */
  async #connected(line: Pick<Line, "query">): Promise<void> {
    await this.#lookForPaused(line);
    // A runner that begins meanwhile finds no line to say so on.
    for (let said: string | undefined | null = null; said !== this.#workerId;) {
      said = this.#workerId;
      if (said) await line.query("select app_private.worker_begins($1)", [said]);
      else await this.#free(line, true);
      await this.#sayStopped(line);
    }
  }

  async #look(): Promise<void> {
    const line = this.#listener?.current();
    if (!line) return;
    await this.#lookForPaused(line);
    await this.#followClock(line);
    await this.#free(line, false);
    await this.#freeLost(line);
  }

  async #lookForPaused({ query }: Pick<Line, "query">): Promise<void> {
    const { rows } = await query<{ ids: number[] }>("select app_private.paused_task_ids() as ids");
    this.#paused = new Set(rows[0]!.ids);
  }

  async #followClock({ query }: Pick<Line, "query">): Promise<void> {
    const { rows } = await query<{ now: number }>(
      "select extract(epoch from clock_timestamp())::float8 * 1000 as now",
    );
    const offset = rows[0]!.now - performance.now();
    if (this.#clockOffset === undefined || offset < this.#clockOffset - setBackMs) {
      const { rows: moved } = await query<{ jobs: number }>("select app_private.follow_clock() as jobs");
      if (moved[0]!.jobs > 0)
        this.#log.warn(
          { event: "worker.clock_set_back", jobs: moved[0]!.jobs },
          "The clock of the database was set back; jobs of later times were moved to now.",
        );
    }
    this.#clockOffset = offset;
  }

  async #free({ query }: Pick<Line, "query">, everywhere: boolean): Promise<void> {
    const { rows: found } = await query<Held & Record<string, unknown>>(
      "select * from app_private.free_jobs_of_dead_workers($1)",
      [everywhere],
    );
    const freed = found.filter(({ ticket }) => ticket === null).length;
    if (freed > 0)
      this.#log.warn({ event: "worker.died", jobs: freed }, "A worker died; its jobs were released.");
    for (const job of found) if (job.ticket !== null) this.#tellSetAside(job);
    const { rows } = await query<{ key: string; ticket: string | null }>(
      "select * from app_private.deadly_keys()",
    );
    this.#deadly = new Map(rows.map(({ key, ticket }) => [key, ticket]));
  }

  #tellSetAside({ ticket, job_id, task, organization_id, deaths }: Held): void {
    this.#log.error(
      {
        event: "job.set_aside",
        code: "JOB_SET_ASIDE",
        ticket,
        task,
        job: job_id,
        organization: organization_id,
        deaths,
      },
      "Processes died twice during this job, which is set aside: find the cause, then release it with app_private.release_job.",
    );
  }

  async #freeLost({ query }: Pick<Line, "query">): Promise<void> {
    if (!this.#workerId || performance.now() > this.#lostUntil) return;
    const { rows } = await query<{ amount: number }>("select app_private.free_lost_jobs($1, $2) as amount", [
      this.#workerId,
      [...this.held],
    ]);
    if (rows[0]!.amount > 0)
      this.#log.warn(
        { event: "worker.jobs_lost", jobs: rows[0]!.amount },
        "Jobs were locked and never started; released.",
      );
  }

  async #sayStopped({ query }: Pick<Line, "query">): Promise<void> {
    for (const id of this.#stopped) {
      await query("select app_private.worker_ends($1)", [id]);
      this.#stopped.delete(id);
    }
  }

  /** Where the connection is broken, the next one says it. */
  async #say(said: (line: Line) => Promise<unknown>): Promise<void> {
    const line = this.#listener?.current();
    if (line) await said(line).catch(() => {});
  }
}
