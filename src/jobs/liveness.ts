/**
 * Liveness of workers. Each worker holds a lock on a connection of its own, which ends with the process. Jobs of dead
 * workers are released when another worker starts and every few seconds, instead of after the job runner's four
 * hours. A lost connection is reopened at once, and others wait a grace period for it. A job during which its process
 * died twice is set aside before it runs again, since it would crash the next process too.
 */
import { openListener, type Line, type ListenConnection, type Listener } from "../database/listener.ts";
import type { Logger } from "../base/log.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";

export interface LivenessOptions {
  /** Connection string of plat_worker. */
  connectionString: string;
  /** Shared listener connection; default: a connection of its own. */
  listenConnection?: ListenConnection | undefined;
  log: Logger;
  /** Interval between searches for dead workers. */
  lookEveryMs?: number;
}

export interface Liveness {
  /** Declares the worker alive from now on; the previous one, if any, has stopped. */
  begin(workerId: string): void;
  /** Jobs that this process is running, or has run without that being recorded yet. */
  readonly held: Set<string>;
  /** The response to a request for a job was lost: the database may have locked a job that nobody runs. */
  noteLostAnswer(): void;
  /** Whether the database knows that this process is alive. */
  isConnected(): boolean;
  /**
   * Whether a process died during a job with that key; opens a ticket if it is set aside. Keys matter because the
   * scheduler enqueues such a job again and again.
   */
  suspicion(key: string): { ticket: string | null } | undefined;
  /** The paused tasks, by the ids of the job runner. */
  pausedTasks(): ReadonlySet<number>;
  /** Called after the worker has stopped; anything it still holds is released. */
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

/**
 * A backward jump of the database clock by fewer milliseconds is ignored; clocks are adjusted by less all the time.
 */
const setBackMs = 60_000;

/** Milliseconds for which jobs of lost responses are searched: the database's detection time plus two searches. */
const LOST_MS = 120_000;

/** Releases what dead workers left, and keeps doing so. Throws if the database is unreachable. */
export async function watchWorkers(options: LivenessOptions): Promise<Liveness> {
  const liveness = new WorkerLiveness(options.log);
  await liveness.start(options);
  return liveness;
}

class WorkerLiveness implements Liveness {
  readonly held = new Set<string>();
  readonly #log: Logger;
  readonly #checker = coalesceCalls(
    () => this.#check(),
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
  /** End of the search for jobs of lost responses. */
  #lostUntil = 0;
  /** Stopped runners of this process that the database does not know about yet. */
  readonly #stopped = new Set<string>();
  #begun: Promise<void> | undefined;
  /**
   * Offset between the monotonic clock of this process and the database clock, in milliseconds, when it was last
   * checked.
   */
  #clockOffset: number | undefined;

  constructor(log: Logger) {
    this.#log = log;
  }

  async start({ connectionString, listenConnection, lookEveryMs = 10_000 }: LivenessOptions): Promise<void> {
    const own = { connectionString, applicationName: "plat-worker-line", log: this.#log };
    this.#listener = await openListener(listenConnection, own, {
      // Jobs are locked by the id of the job runner.
      listensOnly: true,
      listen: { channel: "plat_paused_tasks", called: this.#checker.call },
      connected: (line) => this.#connected(line),
    });
    this.#listener.keep(this.#checker.call, lookEveryMs);
  }

  suspicion(key: string): { ticket: string | null } | undefined {
    return this.#deadly.has(key) ? { ticket: this.#deadly.get(key)! } : undefined;
  }

  begin(id: string): void {
    if (this.#workerId) this.#stopped.add(this.#workerId);
    this.#workerId = id;
    // Jobs of the previous runner are released with it; a job that was never recorded would otherwise count as
    // running forever.
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
    await this.#checker.idle();
    await this.#begun;
    if (this.#workerId) this.#stopped.add(this.#workerId);
    await this.#say((line) => this.#sayStopped(line));
    await this.#listener?.end();
  }

  /** Declares on a new connection which worker is alive. */
  async #connected(line: Pick<Line, "query">): Promise<void> {
    await this.#readPaused(line);
    // A runner that starts meanwhile has no connection for its declaration.
    for (let declared: string | undefined | null = null; declared !== this.#workerId;) {
      declared = this.#workerId;
      if (declared) await line.query("select app_private.worker_begins($1)", [declared]);
      else await this.#free(line, true);
      await this.#sayStopped(line);
    }
  }

  async #check(): Promise<void> {
    const line = this.#listener?.current();
    if (!line) return;
    await this.#readPaused(line);
    await this.#followClock(line);
    await this.#free(line, false);
    await this.#freeLost(line);
  }

  async #readPaused({ query }: Pick<Line, "query">): Promise<void> {
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
          "The clock of the database was set back; jobs with later times were rescheduled to now.",
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
      "Two processes died while they ran this job, so it is set aside: find the cause, then release it with app_private.release_job.",
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

  /** If the connection is broken, the next one declares it. */
  async #say(declare: (line: Line) => Promise<unknown>): Promise<void> {
    const line = this.#listener?.current();
    if (line) await declare(line).catch(() => {});
  }
}
