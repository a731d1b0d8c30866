/**
 * Common base of the background engines. An engine listens for commits, polls for work that is due, leases it and
 * processes it. Any number of processes can run the same engine. If a process dies, its leases become free once its
 * connection is gone and is not reopened. Listeners reconnect with back-off (src/database/listener.ts).
 */
import type { Pool } from "pg";
import { backoff } from "../base/backoff.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import type { Logger } from "../base/log.ts";
import type { LogEvent } from "../base/logEvents.ts";
import { openListener, type Line, type ListenConnection, type Listener } from "../database/listener.ts";
import { isOutage } from "../database/outages.ts";
import { workPoolOf, type WorkPool } from "../database/workConnections.ts";

/** Resources shared by the engines of a process. */
export interface EngineConnections {
  /** Connection string of plat_worker. */
  connectionString: string;
  /** Pool for statements. Default: a separate pool. */
  pool?: Pick<Pool, "query" | "connect">;
  /** Connection that listens. Default: a separate connection. */
  listenConnection?: ListenConnection;
  log: Logger;
}

export interface EngineOptions extends EngineConnections {
  /** Shown in pg_stat_activity for separate connections. */
  name: string;
  /** Maximum number of connections for statements. */
  connections: number;
  /** Log event of a failed round. */
  failure: { event: LogEvent; message: string };
}

/** The sources that wake an engine. */
export interface Wakeup {
  /** Channel to listen on, and the handler of notifications. */
  listen?: { channel: string; called: (payload: string | undefined) => void };
  /** Called at start, after the listener has reconnected, and then every `everyMs`, less often while idle. */
  poll: () => void;
  everyMs: number;
}

/** Milliseconds after the last work for which it still polls every `everyMs`, and the interval after that. */
const ACTIVE_FOR_MS = 30_000;
const IDLE_POLL_MS = 5_000;

/** Runs work at most once at a time. Calls during a run are coalesced into one further run. */
export type Loop = ReturnType<typeof coalesceCalls>;

export class Engine {
  readonly pool: WorkPool;
  readonly #options: EngineOptions;
  readonly #loops: Loop[] = [];
  readonly #underway = new Set<Promise<void>>();
  readonly #pauses = backoff(1_000, 10_000);
  /** No polling before this time, after a failure. */
  #notBefore = 0;
  /** Until then there may be more of the work that was just found. */
  #activeUntil = 0;
  #polledAt = 0;
  #listener: Listener | undefined;
  #isStopping = false;

  constructor(options: EngineOptions) {
    const { connectionString, connections: max, name: applicationName, log } = options;
    this.#options = options;
    this.pool = workPoolOf(options.pool, { connectionString, max, applicationName, log });
  }

  get isStopping(): boolean {
    return this.#isStopping;
  }

  /**
   * The id under which work can be claimed. Undefined while the connection is broken, since new claims would look
   * like those of a dead process, and after the engine has stopped.
   */
  holder(): Line | undefined {
    return this.#isStopping ? undefined : this.#listener?.current();
  }

  /**
   * Work triggered by a call. Consecutive failures delay the next poll further each time.
   * @param work returns whether there was something to do
   */
  loop(work: () => Promise<boolean>): Loop {
    const loop = coalesceCalls(
      async () => {
        if (this.#isStopping) return;
        if (await work()) this.#isActive();
        this.#pauses.reset();
      },
      (error) => {
        this.#notBefore = performance.now() + this.#pauses.pause();
        this.report(error);
      },
    );
    this.#loops.push(loop);
    return loop;
  }

  /** Processes a lease concurrently; the lease is held for as long as that takes. */
  lease(holder: Line, work: () => Promise<void>): void {
    const release = holder.hold();
    this.beside(() => work().finally(release));
  }

  /** Runs something concurrently; stopping waits for it. */
  beside(work: () => Promise<void>): void {
    this.#isActive();
    const working = work()
      .catch((error: unknown) => this.report(error))
      .finally(() => this.#underway.delete(working));
    this.#underway.add(working);
  }

  /** Logs a failure. If it came from a connection, the leases of this process are in doubt. */
  report(error: unknown): void {
    this.#isActive();
    if (isOutage(error)) this.renew();
    const { log, failure } = this.#options;
    if (!this.#isStopping) log.warn({ event: failure.event, err: error }, failure.message);
  }

  /** Uses a new id for further claims. */
  renew(): void {
    this.#listener?.renew();
  }

  /** @throws if the database is unreachable */
  async start({ listen, poll, everyMs }: Wakeup): Promise<void> {
    const { listenConnection, connectionString, name: applicationName, log } = this.#options;
    try {
      this.#listener = await openListener(
        listenConnection,
        { connectionString, applicationName, log },
        listen ? { listen: { ...listen, called: (payload) => this.#call(listen.called, payload) } } : {},
      );
    } catch (error) {
      await this.pool.end();
      throw error;
    }
    this.#listener.keep((isTick) => {
      const now = performance.now();
      const isIdle = now >= this.#activeUntil && now < this.#polledAt + IDLE_POLL_MS;
      if (isTick && (isIdle || now < this.#notBefore)) return;
      this.#polledAt = now;
      poll();
    }, everyMs);
  }

  #isActive(): void {
    this.#activeUntil = performance.now() + ACTIVE_FOR_MS;
  }

  #call(called: (payload: string | undefined) => void, payload: string | undefined): void {
    this.#isActive();
    called(payload);
  }

  /** Stops claiming and waits for work in progress. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#listener?.rest();
    await this.#idle();
    while (this.#underway.size > 0) await Promise.all(this.#underway);
    // Completed work may have created more.
    await this.#idle();
    await this.#listener?.end();
    await this.pool.end();
  }

  async #idle(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.idle()));
  }
}
