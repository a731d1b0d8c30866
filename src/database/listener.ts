/**
 * The connection by which a process hears that there is something to do, and by which others see that it lives: what the process holds
 * bears an id of the connection, and is anybody's when that is gone and does not come back in time. A connection that breaks is made anew
 * at once: it gets another id for what is begun from then on, and keeps the former ones for as long as something is under way under them.
 * One that nobody answers on is found out within seconds.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { QueryResult, QueryResultRow } from "pg";
import { backoff } from "../base/backoff.ts";
import type { Logger } from "../base/log.ts";
import { DatabaseClient } from "./client.ts";

export interface ListenerOptions {
  /** That of plat_worker, or of any role for a line that only listens. */
  connectionString: string;
  /** Shown in pg_stat_activity, and in the log. */
  applicationName: string;
  log: Logger;
  /** The channel to listen on, and what to do when somebody calls. */
  listen?: { channel: string; called: (payload: string | undefined) => void };
  /** Milliseconds of silence after which the line is given up; ten seconds unless given. */
  answerWithin?: number;
  /** Whether it only listens: nothing is held by it, and others do not look for it. */
  listensOnly?: boolean;
  /** Said on each new connection before it counts. */
  connected?: (line: Pick<Line, "query">) => Promise<void>;
}

/** A line that is up. */
export interface Line {
  /** By which the process holds what it claims now. */
  readonly id: number;
  /** Keeps the id alive, also on the lines after this one, until what it gives is called: while something claimed under it is under way. */
  hold(): () => void;
  /** Runs a statement on the connection, behind those that were asked for before. */
  query<R extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<R>>;
}

export interface Listener {
  /** Undefined while it is broken. */
  current(): Line | undefined;
  /** Looks at once, after each repair, and every `everyMs` while it is up: for what waits for a time, and for calls that were missed. */
  keep(look: () => void, everyMs: number): void;
  /**
   * Takes another id for what comes. To be called when a claim failed with its connection: whether something is held is unknown then,
   * and what nobody works on is free as soon as nothing else is under way under the former id.
   */
  renew(): void;
  /** No looks and no repairs from now on; the line stays for what is under way. */
  rest(): Promise<void>;
  end(): Promise<void>;
}

/** Milliseconds of silence after which a statement on the line, and with it the line, is given up. */
const ANSWER_MS = 10_000;
/** How often others are looked for that are gone, which tells as well whether anybody answers on the line. */
const LOOK_FOR_OTHERS_MS = 1_000;

/** Opens the line; throws where the database cannot be reached. */
export async function openListener(options: ListenerOptions): Promise<Listener> {
  const { connectionString, applicationName, log, listen, connected, answerWithin = ANSWER_MS } = options;
  const { listensOnly = false } = options;
  /** What is under way, by the ids that it is held by. */
  const underway = new Map<number, number>();
  let client: DatabaseClient | undefined;
  let line: Line | undefined;
  let repairing: Promise<void> | undefined;
  let looking: NodeJS.Timeout | undefined;
  let look = (): void => {};
  const resting = new AbortController();

  /** The line under an id of its own. */
  async function begin(query: Line["query"]): Promise<Line> {
    if (listensOnly) return { id: 0, query, hold: () => () => {} };
    const { rows } = await query<{ id: number }>("select app_private.connection_begins(null) as id");
    const { id } = rows[0]!;
    const hold = () => {
      underway.set(id, (underway.get(id) ?? 0) + 1);
      return () => {
        const left = underway.get(id)! - 1;
        if (left > 0) return void underway.set(id, left);
        underway.delete(id);
        if (line?.id !== id) forget(id);
      };
    };
    return { id, query, hold };
  }

  /** Where the line is broken, others notice that the id is gone. */
  function forget(id: number): void {
    if (listensOnly) return;
    void line?.query("select app_private.connection_ends($1)", [id]).catch(() => {});
  }

  let renewing: Promise<void> | undefined;
  async function renew(former: Line): Promise<void> {
    const next = await begin(former.query);
    if (line !== former) return;
    line = next;
    if (!underway.has(former.id)) forget(former.id);
  }

  async function connect(): Promise<void> {
    const made = new DatabaseClient({
      connectionString,
      application_name: applicationName,
      answerWithin,
    });
    const lost = (error?: Error) => {
      if (client !== made) return;
      client = undefined;
      line = undefined;
      if (resting.signal.aborted) return;
      log.warn(
        { event: "database.line_lost", err: error, line: applicationName },
        "A database connection was lost; reconnecting.",
      );
      repair();
    };
    made.on("error", lost);
    made.on("end", lost);
    if (listen) made.on("notification", ({ payload }) => listen.called(payload));
    let turn: Promise<unknown> = Promise.resolve();
    const query = <R extends QueryResultRow>(text: string, values?: unknown[]): Promise<QueryResult<R>> => {
      const result = turn.then(() => made.query(text, values) as Promise<QueryResult<R>>);
      turn = result.catch(() => {});
      return result;
    };
    try {
      await made.connect();
      // A machine that vanished without a word is noticed within half a minute, on both sides.
      await query(
        "set tcp_keepalives_idle = 10; set tcp_keepalives_interval = 5; set tcp_keepalives_count = 3; set tcp_user_timeout = 30000",
      );
      const held = [...underway.keys()];
      for (const id of held) await query("select app_private.connection_begins($1)", [id]);
      const next = await begin(query);
      if (listen) await query(`listen ${listen.channel}`);
      await connected?.({ query });
      client = made;
      line = next;
      // What ended meanwhile found no line to say so, and would hold on for as long as this one lives.
      for (const id of held) if (!underway.has(id)) forget(id);
    } catch (error) {
      made.on("error", () => {});
      await made.end();
      throw error;
    }
  }

  function repair(): void {
    repairing ??= (async () => {
      const pauses = backoff();
      while (!resting.signal.aborted) {
        try {
          await connect();
          look();
          return;
        } catch (error) {
          const ms = pauses.pause();
          log.warn(
            { event: "database.line_down", err: error, line: applicationName, nextAttemptMs: Math.round(ms) },
            `Connecting to the database failed; retrying in ${Math.round(ms)} ms.`,
          );
          await pause(ms, undefined, { signal: resting.signal }).catch(() => {});
        }
      }
    })().finally(() => (repairing = undefined));
  }

  await connect();
  const ping = setInterval(() => {
    // One that fails breaks the line, which is told there.
    void line?.query(listensOnly ? "select" : "select app_private.note_gone_connections()").catch(() => {});
  }, LOOK_FOR_OTHERS_MS);
  return {
    current: () => line,
    keep(given, everyMs) {
      look = given;
      looking = setInterval(() => line && look(), everyMs);
      look();
    },
    renew() {
      if (line && !resting.signal.aborted)
        renewing ??= renew(line)
          .catch(() => {})
          .finally(() => (renewing = undefined));
    },
    async rest() {
      resting.abort();
      clearInterval(looking);
      clearInterval(ping);
      await repairing;
    },
    async end() {
      clearInterval(ping);
      if (line) forget(line.id);
      await line?.query("select").catch(() => {});
      await client?.end();
    },
  };
}
