/**
 * The connections of the job runner. It gives up for good where it cannot note that a job is done, and asks for connections every two
 * seconds for each job that it could run: both are mended here, where all its statements pass.
 */
import { setTimeout as pause } from "node:timers/promises";
import { Pool, type PoolClient } from "pg";
import { backoff } from "../backoff.ts";
import { DatabaseClient, type DatabaseClientConfig } from "../database/client.ts";
import { throughOutages } from "../database/outages.ts";
import { withLockTimeout } from "../database/pool.ts";
import type { Logger } from "../log.ts";

export interface RunnerPoolOptions {
  /** That of plat_worker. */
  connectionString: string;
  /** Connections at a time. */
  max: number;
  log: Logger;
}

type Taken = (error: Error | undefined, client?: PoolClient, release?: PoolClient["release"]) => void;

/** A statement of a job may take five minutes, as those of the other engines. */
const STATEMENT_MS = 300_000;
const GRACE_MS = 3_000;
/** How long it is tried to note what became of a job: longer than a failover takes. */
const NOTE_MS = 10 * 60_000;

/** By the names of its prepared statements: what notes what became of jobs. They may run twice. */
const notes = /^(complete|fail|return)_jobs?(_q)?\//;

export class RunnerPool extends Pool {
  readonly #pauses = backoff();
  readonly #ending = new AbortController();
  /** Until when nobody asks for a new connection. */
  #notBefore = 0;

  constructor({ connectionString, max, log }: RunnerPoolOptions) {
    const config: DatabaseClientConfig = { answerWithin: STATEMENT_MS + GRACE_MS };
    super({
      ...config,
      Client: DatabaseClient,
      connectionString: withLockTimeout(connectionString),
      max,
      application_name: "plat-worker-jobs",
      statement_timeout: STATEMENT_MS,
    });
    const broke = (error: Error) => {
      if (!this.ending) log.warn({ err: error, pool: "plat-worker-jobs" }, "A database connection broke.");
    };
    this.on("error", broke);
    this.on("connect", (client) => {
      client.on("error", broke);
      this.#noteThroughOutages(client);
    });
  }

  /** As the pool's own; after a failure the next attempts wait a while, all together. */
  override connect(): Promise<PoolClient>;
  override connect(taken: Taken): void;
  override connect(taken?: Taken): Promise<PoolClient> | void {
    const client = this.#connect();
    if (!taken) return client;
    client.then(
      (given) => taken(undefined, given, given.release),
      (error: Error) => taken(error),
    );
  }

  async #connect(): Promise<PoolClient> {
    const wait = this.#notBefore - performance.now();
    if (wait > 0 && !this.ending)
      await pause(wait, undefined, { signal: this.#ending.signal }).catch(() => {});
    try {
      const client = await super.connect();
      this.#pauses.reset();
      this.#notBefore = 0;
      return client;
    } catch (error) {
      // Those who failed together are one failure.
      if (performance.now() >= this.#notBefore) this.#notBefore = performance.now() + this.#pauses.pause();
      throw error;
    }
  }

  /** A note that fails with its connection is written on another one. */
  #noteThroughOutages(client: PoolClient): void {
    const query = client.query.bind(client) as (...statement: any[]) => any;
    client.query = ((...statement: any[]) => {
      const [config] = statement;
      if (typeof config?.name !== "string" || !notes.test(config.name)) return query(...statement);
      let isFirst = true;
      return throughOutages(
        async () => {
          if (!isFirst) return await this.#write(config);
          isFirst = false;
          return await query(config);
        },
        { withinMs: NOTE_MS, signal: this.#ending.signal },
      );
    }) as PoolClient["query"];
  }

  async #write(config: { text: string; values: unknown[] }): Promise<unknown> {
    // Not by name: it would come here again.
    const client = await this.connect();
    let failure: Error | undefined;
    try {
      return await client.query({ text: config.text, values: config.values });
    } catch (error) {
      failure = error as Error;
      throw error;
    } finally {
      client.release(failure);
    }
  }

  /** Tries no longer to note what cannot be noted now: of jobs that were done, some run again. */
  giveUp(): void {
    this.#ending.abort();
  }
}
