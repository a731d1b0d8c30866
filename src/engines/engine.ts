/**
 * What the engines of background work have in common: they listen for commits, poll for what waits for a time, lease what they find, and work on
 * it. Any number of processes may run the same engine; what one of them held when it died is free when its connection is gone and does not
 * come back. A listener that breaks is connected again with back-off (src/database/listener.ts).
 */
import type { Pool } from "pg";
import { backoff } from "../base/backoff.ts";
import { coalesceCalls } from "../base/coalesceCalls.ts";
import type { Logger } from "../base/log.ts";
import type { LogEvent } from "../base/logEvents.ts";
import { openListener, type Line, type ListenConnection, type Listener } from "../database/listener.ts";
import { isOutage } from "../database/outages.ts";
import { workPoolOf, type WorkPool } from "../database/workConnections.ts";

/** What the engines of a process share. */
export interface EngineConnections {
  /** That of plat_worker. */
  connectionString: string;
  /** The connections for statements; its own where omitted. */
  pool?: Pick<Pool, "query" | "connect">;
  /** The connection that listens; its own where omitted. */
  listenConnection?: ListenConnection;
  log: Logger;
}

export interface EngineOptions extends EngineConnections {
  /** Shown in pg_stat_activity, where its connections are its own. */
  name: string;
  /** Connections for statements at a time. */
  connections: number;
  /** What the log says of a round of work that failed. */
  failure: { event: LogEvent; message: string };
}

/** How an engine learns that there is something to do. */
export interface Wakeup {
  /** The channel to listen on, and what to do at a notification. */
  listen?: { channel: string; called: (payload: string | undefined) => void };
  /** Called at once, after the listener was away, and then every `everyMs`; less often while there is nothing to do. */
  poll: () => void;
  everyMs: number;
}

/** How long after the last work it still polls every `everyMs`, in milliseconds, and how often later. */
const ACTIVE_FOR_MS = 30_000;
const IDLE_POLL_MS = 5_000;

/** Work that is done once at a time; a call meanwhile has it done once more. */
export type Loop = ReturnType<typeof coalesceCalls>;

export class Engine {
  readonly pool: WorkPool;
  readonly #options: EngineOptions;
  readonly #loops: Loop[] = [];
  readonly #underway = new Set<Promise<void>>();
  readonly #pauses = backoff(1_000, 10_000);
  /** Until when it does not poll, after a failure. */
  #notBefore = 0;
  /** Until when there may be more of what there was a moment ago. */
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
   * By whose id something may be claimed now. Undefined while the connection is broken, since what is claimed then would be taken for that of a
   * dead process, and once the engine stops.
   */
  holder(): Line | undefined {
    return this.#isStopping ? undefined : this.#listener?.current();
  }

  /**
   * Work that a call begins. After a failure it is polled later, and later again after the next one.
   * @param work gives whether there was something to do
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

  /** Does what was leased beside everything else; the lease stays for as long as that takes. */
  lease(holder: Line, work: () => Promise<void>): void {
    const release = holder.hold();
    this.beside(() => work().finally(release));
  }

  /** Does something beside everything else, which a stop waits for. */
  beside(work: () => Promise<void>): void {
    this.#isActive();
    const working = work()
      .catch((error: unknown) => this.report(error))
      .finally(() => this.#underway.delete(working));
    this.#underway.add(working);
  }

  /** Logs a failure. Where it came of a connection, what is held by now is unknown. */
  report(error: unknown): void {
    this.#isActive();
    if (isOutage(error)) this.renew();
    const { log, failure } = this.#options;
    if (!this.#isStopping) log.warn({ event: failure.event, err: error }, failure.message);
  }

  /** Takes another id for what is claimed from now on. */
  renew(): void {
    this.#listener?.renew();
  }

  /** @throws where the database cannot be reached */
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

  /** Claims nothing further, and waits for what is under way. */
  async stop(): Promise<void> {
    this.#isStopping = true;
    this.#listener?.rest();
    await this.#idle();
    while (this.#underway.size > 0) await Promise.all(this.#underway);
    // What ended may have called for more.
    await this.#idle();
    await this.#listener?.end();
    await this.pool.end();
  }

  async #idle(): Promise<void> {
    await Promise.all(this.#loops.map((loop) => loop.idle()));
  }
}
