/**
 * The connection on which a process listens for notifications, and by which other processes see that it is alive. A
 * process has one; each part of it that listens or holds leases is a listener of it. Leases carry an id of their
 * listener, and are free once the connection is gone and does not come back in time. A broken connection is reopened
 * at once: each listener gets a new id for further leases, and keeps the former ones while work is in progress under
 * them. An unresponsive connection is detected within seconds.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { QueryResult, QueryResultRow } from "pg";
import { backoff } from "../base/backoff.ts";
import type { Logger } from "../base/log.ts";
import { DatabaseClient } from "./client.ts";

export interface ListenConnectionOptions {
  /** Connection string of plat_worker, or of any role if no listener holds leases. */
  connectionString: string;
  /** Shown in pg_stat_activity, and in the log. */
  applicationName: string;
  log: Logger;
  /** Milliseconds of silence after which the connection is closed. Default: ten seconds. */
  answerWithin?: number;
}

export interface ListenerOptions {
  /** Channel to listen on, and the handler of notifications. */
  listen?: { channel: string; called: (payload: string | undefined) => void };
  /** Whether it only listens: it holds no leases, and others do not check for it. */
  listensOnly?: boolean;
  /** Announced on each new connection before it counts. */
  connected?: (line: Pick<Line, "query">) => Promise<void>;
  /** Called when it is closed. */
  ended?: () => Promise<void>;
}

/** Interface of a listener while the connection is up. */
export interface Line {
  /** The id for new leases. */
  readonly id: number;
  /**
   * Keeps the id alive, across reconnects, until the returned function is called: while work claimed under it is in
   * progress.
   */
  hold(): () => void;
  /** Runs a statement on the connection, after those queued before. */
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<R>>;
}

export interface Listener {
  /** Undefined while the connection is broken. */
  current(): Line | undefined;
  /**
   * Polls at once, after each reconnect, and every `everyMs` while the connection is up: for scheduled work and
   * missed notifications.
   * @param check gets whether the call is only due to the interval
   */
  keep(check: (isTick: boolean) => void, everyMs: number): void;
  /**
   * Uses a new id for further leases. Called when a claim failed with its connection: its outcome is unknown, and
   * orphaned leases are released as soon as no other work is in progress under the former id.
   */
  renew(): void;
  /** Stops polling; the connection stays open for work in progress. */
  rest(): void;
  /** Stops listening and releases everything. */
  end(): Promise<void>;
}

type Query = Line["query"];

/** Milliseconds of silence after which a statement on the connection, and so the connection, is given up. */
const ANSWER_MS = 10_000;
/** Interval of checks for dead processes, which also test the connection. */
const LOOK_FOR_OTHERS_MS = 1_000;
/** The same while there is no other process. */
const LOOK_ALONE_MS = 5_000;

/** A connection and its listeners. */
export class ListenConnection {
  readonly #options: ListenConnectionOptions;
  readonly #listeners = new Set<SharedListener>();
  readonly #ending = new AbortController();
  #client: DatabaseClient | undefined;
  /** Undefined while it is broken. */
  #query: Query | undefined;
  #repairing: Promise<void> | undefined;
  #ping: NodeJS.Timeout | undefined;

  private constructor(options: ListenConnectionOptions) {
    this.#options = options;
    this.#pingAfter(LOOK_FOR_OTHERS_MS);
  }

  #pingAfter(ms: number): void {
    const pingAgain = async () => {
      // A failed statement breaks the connection, which is reported there.
      const hasOthers = await this.#hasOthers().catch(() => true);
      if (!this.#ending.signal.aborted) this.#pingAfter(hasOthers ? LOOK_FOR_OTHERS_MS : LOOK_ALONE_MS);
    };
    this.#ping = setTimeout(() => {
      pingAgain().catch(() => {});
    }, ms);
  }

  /** Updates the list of lost processes. @returns whether any process is connected or may reconnect */
  async #hasOthers(): Promise<boolean> {
    const query = this.#query;
    const own = new Set([...this.#listeners].flatMap((listener) => listener.ids()));
    if (own.size > 0 && query) {
      const { rows } = await query<{ amount: number }>(
        "select app_private.note_gone_connections() as amount",
      );
      return rows[0]!.amount > own.size;
    }
    await query?.("select");
    return true;
  }

  /** @throws if the database is unreachable */
  static async open(options: ListenConnectionOptions): Promise<ListenConnection> {
    const connection = new ListenConnection(options);
    try {
      await connection.#connect();
      return connection;
    } catch (error) {
      connection.#ending.abort();
      clearTimeout(connection.#ping);
      throw error;
    }
  }

  /**
   * Adds a part of the process; if the connection is broken, reconnecting adds it.
   * @throws if the database refuses its announcement
   */
  async listen(options: ListenerOptions): Promise<Listener> {
    const listener = new SharedListener(options, async ({ channel }) => {
      this.#listeners.delete(listener);
      const isShared = [...this.#listeners].some((other) => other.channel === channel);
      if (channel !== undefined && !isShared) await this.#query?.(`unlisten ${channel}`).catch(() => {});
    });
    this.#listeners.add(listener);
    const query = this.#query;
    try {
      if (query) await listener.begin(query);
    } catch (error) {
      // If the connection has broken, reconnecting starts it.
      if (this.#query === query) {
        this.#listeners.delete(listener);
        throw error;
      }
    }
    return listener;
  }

  async #connect(): Promise<void> {
    const { connectionString, applicationName, answerWithin = ANSWER_MS } = this.#options;
    const made = new DatabaseClient({ connectionString, application_name: applicationName, answerWithin });
    made.on("error", (error) => this.#lost(made, error));
    made.on("end", () => this.#lost(made));
    made.on("notification", ({ channel, payload }) => {
      for (const listener of this.#listeners) if (listener.channel === channel) listener.called(payload);
    });
    let turn: Promise<unknown> = Promise.resolve();
    const query: Query = (text, values) => {
      const result = turn.then(() => made.query(text, values));
      turn = result.catch(() => {});
      return result;
    };
    try {
      await made.connect();
      // A machine that disappeared is detected within half a minute, on both sides.
      await query(
        "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; set tcp_user_timeout = 30000",
      );
      // Parts added meanwhile are at the end of the list.
      for (const listener of this.#listeners) await listener.begin(query);
      this.#client = made;
      this.#query = query;
    } catch (error) {
      for (const listener of this.#listeners) listener.lost();
      made.on("error", () => {});
      await made.end();
      throw error;
    }
  }

  #lost(client: DatabaseClient, error?: Error): void {
    if (this.#client !== client) return;
    this.#client = undefined;
    this.#query = undefined;
    for (const listener of this.#listeners) listener.lost();
    if (this.#ending.signal.aborted) return;
    const { applicationName, log } = this.#options;
    log.warn(
      { event: "database.line_lost", err: error, line: applicationName },
      "A database connection was lost; reconnecting.",
    );
    this.#repairing ??= this.#repair().finally(() => (this.#repairing = undefined));
  }

  async #repair(): Promise<void> {
    const { applicationName, log } = this.#options;
    const { signal } = this.#ending;
    const pauses = backoff();
    while (!signal.aborted) {
      try {
        await this.#connect();
        for (const listener of this.#listeners) listener.check();
        return;
      } catch (error) {
        const ms = pauses.pause();
        log.warn(
          { event: "database.line_down", err: error, line: applicationName, nextAttemptMs: Math.round(ms) },
          `Connecting to the database failed; retrying in ${Math.round(ms)} ms.`,
        );
        await pause(ms, undefined, { signal }).catch(() => {});
      }
    }
  }

  /** Stops reconnecting and closes the connection after pending statements. */
  async end(): Promise<void> {
    this.#ending.abort();
    clearTimeout(this.#ping);
    await this.#repairing;
    await this.#query?.("select").catch(() => {});
    await this.#client?.end();
  }
}

/** One listener of a connection. */
class SharedListener implements Listener {
  readonly #options: ListenerOptions;
  readonly #leave: (listener: SharedListener) => Promise<void>;
  /** Work in progress, by lease id. */
  readonly #underway = new Map<number, number>();
  #line: Line | undefined;
  #check = (_isTick: boolean): void => {};
  #checking: NodeJS.Timeout | undefined;
  #isRenewing = false;
  #isResting = false;

  constructor(options: ListenerOptions, leave: (listener: SharedListener) => Promise<void>) {
    this.#options = options;
    this.#leave = leave;
  }

  get channel(): string | undefined {
    return this.#options.listen?.channel;
  }

  get listensOnly(): boolean {
    return this.#options.listensOnly ?? false;
  }

  /** The ids by which it is known in the database. */
  ids(): number[] {
    if (this.listensOnly) return [];
    return [...new Set([...this.#underway.keys(), ...(this.#line ? [this.#line.id] : [])])];
  }

  called(payload: string | undefined): void {
    this.#options.listen?.called(payload);
  }

  /** Announces leases and channels on a new connection. */
  async begin(query: Query): Promise<void> {
    const held = [...this.#underway.keys()];
    for (const id of held) await query("select app_private.connection_begins($1)", [id]);
    const line = await this.#newLine(query);
    if (this.channel !== undefined) await query(`listen ${this.channel}`);
    await this.#options.connected?.({ query });
    this.#line = line;
    // Work that ended meanwhile could not report it, and would hold its lease as long as this connection lives.
    for (const id of held) if (!this.#underway.has(id)) this.#forget(id);
  }

  /** The connection broke. */
  lost(): void {
    this.#line = undefined;
  }

  check(): void {
    if (!this.#isResting) this.#check(false);
  }

  /** The connection, registered under a new id. */
  async #newLine(query: Query): Promise<Line> {
    if (this.listensOnly) return { id: 0, query, hold: () => () => {} };
    const { rows } = await query<{ id: number }>("select app_private.connection_begins(null) as id");
    const { id } = rows[0]!;
    return { id, query, hold: () => this.#hold(id) };
  }

  #hold(id: number): () => void {
    const underway = this.#underway;
    underway.set(id, (underway.get(id) ?? 0) + 1);
    return () => {
      const left = underway.get(id)! - 1;
      if (left > 0) return void underway.set(id, left);
      underway.delete(id);
      if (this.#line?.id !== id) this.#forget(id);
    };
  }

  /** If the connection is broken, others notice that the id is gone. */
  #forget(id: number): void {
    if (this.listensOnly) return;
    void this.#line?.query("select app_private.connection_ends($1)", [id]).catch(() => {});
  }

  current(): Line | undefined {
    return this.#line;
  }

  keep(check: (isTick: boolean) => void, everyMs: number): void {
    this.#check = check;
    this.#checking = setInterval(() => this.#line && check(true), everyMs);
    check(false);
  }

  renew(): void {
    const former = this.#line;
    if (!former || this.#isResting) return;
    const renew = async () => {
      const next = await this.#newLine(former.query);
      if (this.#line !== former) return;
      this.#line = next;
      if (!this.#underway.has(former.id)) this.#forget(former.id);
    };
    if (this.#isRenewing) return;
    this.#isRenewing = true;
    void renew()
      .catch(() => {})
      .finally(() => (this.#isRenewing = false));
  }

  rest(): void {
    this.#isResting = true;
    clearInterval(this.#checking);
  }

  async end(): Promise<void> {
    this.rest();
    if (this.#line) this.#forget(this.#line.id);
    await this.#leave(this);
    this.#line = undefined;
    await this.#options.ended?.();
  }
}

/** A listener on the given connection, or on a connection of its own that ends with it. */
export async function openListener(
  shared: ListenConnection | undefined,
  own: ListenConnectionOptions,
  options: ListenerOptions,
): Promise<Listener> {
  if (shared) return shared.listen(options);
  const connection = await ListenConnection.open(own);
  const ended = () => connection.end();
  try {
    return await connection.listen({ ...options, ended });
  } catch (error) {
    await ended();
    throw error;
  }
}
