/**
 * Connections of the job runner. The job runner fails permanently if it cannot record that a job is done, and polls
 * every few seconds per free slot. Both are fixed here, where all its statements pass.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Pool, type PoolClient } from "pg";
import { backoff } from "../base/backoff.ts";
import { DatabaseClient, type DatabaseClientConfig } from "../database/client.ts";
import { retryDuringOutages } from "../database/outages.ts";
import { withLockTimeout } from "../database/pool.ts";
import { stampRequests } from "../database/stampRequests.ts";
import type { Logger } from "../base/log.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

export interface RunnerPoolOptions {
  /** Connection string of plat_worker. */
  connectionString: string;
  /** Maximum number of connections. */
  max: number;
  log: Logger;
  /** Called when the outcome of jobs was recorded; `inQueue`: their named queue is available again. */
  noted: (jobIds: string[], inQueue: boolean) => void;
  /** Ids of tasks whose jobs are not fetched. */
  pausedTasks?: () => ReadonlySet<number>;
}

/** A statement of the job runner about finished jobs. */
interface Note {
  name: string;
  text: string;
  values: unknown[];
}

type Taken = (error: Error | undefined, client?: PoolClient, release?: PoolClient["release"]) => void;

/** Statements of jobs may take five minutes, like those of the other engines. */
const STATEMENT_MS = 300_000;
const GRACE_MS = 3_000;
/** Milliseconds for which recording an outcome is retried: longer than a failover takes. */
const NOTE_MS = 10 * 60_000;

/** Prepared statements that record outcomes, by name. They are idempotent. */
const notes = /^(complete|fail|return)_jobs?(_q)?\//;
/** Those of them that are about jobs of named queues, which they release. */
const queueNotes = /_q\//;

/** Prepared statements that fetch jobs, by name. */
const questions = /^get_job/;

/** Milliseconds for which connections and records are still retried after a stop was requested. */
const STOPPING_MS = 5_000;

export class RunnerPool extends Pool {
  readonly #pauses = backoff();
  readonly #ending = new AbortController();
  readonly #noted: RunnerPoolOptions["noted"];
  readonly #pausedTasks: () => ReadonlySet<number>;
  /** No new connections before this time. */
  #notBefore = 0;

  constructor({ connectionString, max, log, noted, pausedTasks = () => new Set() }: RunnerPoolOptions) {
    const config: DatabaseClientConfig = { answerWithin: STATEMENT_MS + GRACE_MS };
    super({
      ...config,
      Client: DatabaseClient,
      connectionString: withLockTimeout(connectionString),
      max,
      application_name: "plat-worker-jobs",
      statement_timeout: STATEMENT_MS,
    });
    this.#noted = noted;
    this.#pausedTasks = pausedTasks;
    const broke = (error: Error) => {
      if (!this.ending)
        log.warn(
          { event: "database.connection_lost", err: error, pool: "plat-worker-jobs" },
          "A database connection was lost; the pool opens another one.",
        );
    };
    this.on("error", broke);
    this.on("connect", (client) => {
      client.on("error", broke);
      stampRequests(client);
      this.#noteThroughOutages(client);
    });
  }

  /** Like the pool's own method, but waits through outages until the database is back. */
  override connect(): Promise<PoolClient>;
  override connect(taken: Taken): void;
  override connect(taken?: Taken): Promise<PoolClient> | void {
    const client = retryDuringOutages(() => this.#connect(), {
      withinMs: NOTE_MS,
      signal: this.#ending.signal,
    });
    if (!taken) return client;
    client.then(
      (given) => taken(undefined, given, given.release),
      (error: Error) => taken(error),
    );
  }

  /** After a failure, all further attempts wait together. */
  async #connect(): Promise<PoolClient> {
    const wait = this.#notBefore - performance.now();
    if (wait > 0) await pause(wait, undefined, { signal: this.#ending.signal }).catch(() => {});
    try {
      const client = await super.connect();
      this.#pauses.reset();
      this.#notBefore = 0;
      return client;
    } catch (error) {
      // Concurrent failures count as one.
      if (performance.now() >= this.#notBefore) this.#notBefore = performance.now() + this.#pauses.pause();
      throw error;
    }
  }

  /** A record whose connection failed is retried on another one. */
  #noteThroughOutages(client: PoolClient): void {
    const query = client.query.bind(client) as (...statement: DatabaseValue[]) => DatabaseValue;
    client.query = ((...statement: DatabaseValue[]) => {
      const [config] = statement as [Note];
      if (typeof config?.name !== "string") return query(...statement);
      if (questions.test(config.name)) return query(this.#withoutPaused(config));
      if (!notes.test(config.name)) return query(...statement);
      return this.#note(config, () => query(config));
    }) as PoolClient["query"];
  }

  /** The query that fetches jobs, limited to tasks that are known to this process and not paused. */
  #withoutPaused(question: Note): Note {
    const paused = this.#pausedTasks();
    if (paused.size === 0) return question;
    const [worker, tasks, ...rest] = question.values as [string, number[], ...unknown[]];
    return { ...question, values: [worker, tasks.filter((task) => !paused.has(task)), ...rest] };
  }

  async #note(note: Note, first: () => Promise<unknown>): Promise<unknown> {
    let isFirst = true;
    const result = await retryDuringOutages(
      async () => {
        if (!isFirst) return await this.#write(note);
        isFirst = false;
        return await first();
      },
      { withinMs: NOTE_MS, signal: this.#ending.signal },
    );
    this.#noted(jobsOf(note), queueNotes.test(note.name));
    return result;
  }

  async #write({ text, values }: Note): Promise<unknown> {
    const client = await this.connect();
    let failure: Error | undefined;
    try {
      // Sent without the statement name, which would be intercepted here again.
      return await client.query({ text, values });
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }

  /** When stopping, a record that fails for a few seconds is given up; such a job may run once more. */
  hurry(): void {
    setTimeout(() => this.#ending.abort(), STOPPING_MS).unref();
  }
}

/** The jobs that a record is about. */
function jobsOf({ values }: Note): string[] {
  const [ids, failures] = values;
  if (typeof failures === "string" && failures.startsWith("["))
    return (JSON.parse(failures) as { jobId: string }[]).map(({ jobId }) => String(jobId));
  return [ids].flat().map(String);
}
