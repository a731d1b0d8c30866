/**
 * Connections that do not wait for ever. A host that vanishes closes no connection: TCP goes on sending to it for a quarter of an hour,
 * and a proxy that has lost its other side takes everything and answers nothing. So each wait has a deadline on this side.
 */
import { Client, type ClientConfig } from "pg";
import { startSpan } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import { startTiming, type StatementTiming, statementTimings } from "./timings.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/** Milliseconds to connect, log-in included. */
const CONNECT_MS = 10_000;
/** Milliseconds that the server has to close a connection after it was told goodbye. */
const END_MS = 2_000;
/** Idle milliseconds after which the system asks whether the other host is there; it asks ten times, each second. */
const KEEP_ALIVE_MS = 10_000;
/** How often a connection that waits for an answer is looked at, at most. */
const LOOK_MS = 1_000;
/** Characters of a statement that a span shows. */
const SPAN_TEXT_LENGTH = 500;

export interface DatabaseClientConfig extends ClientConfig {
  /**
   * Milliseconds of silence during a statement after which the connection is given up. It has to be longer than the `statement_timeout`
   * of the connection: the server then answers first, and says why. A minute unless given.
   */
  answerWithin?: number;
  /** Milliseconds to connect, log-in included; ten seconds unless given. */
  connectWithin?: number;
  /** Whether the names of statements are left out, so that the server keeps none prepared. */
  unnamed?: boolean;
}

/**
 * Where the event loop was held up, what has arrived meanwhile is read first. For the same reason times are counted in looks, of which one
 * is made however long that took.
 */
function afterReading(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/** The server said nothing for too long, so that the connection was given up. What became of the statement is unknown. */
export class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor(answerWithin: number) {
    super(`The database has not answered for ${answerWithin / 1000} seconds.`);
    this.name = "NoAnswerError";
  }
}

/** What the types of `pg` do not tell of a client. */
interface Inside {
  connection: { stream: { bytesRead: number; destroy(error?: Error): void } };
}

/** The client of node-postgres, with a deadline on connecting, on each answer, and on its end. */
export class DatabaseClient extends Client {
  readonly #name: string;
  readonly #answerWithin: number;
  readonly #connectWithin: number;
  readonly #unnamed: boolean;
  /** Whether an answer is waited for; for how many milliseconds nothing was heard, and the bytes that were heard until then. */
  #isBusy = false;
  #silence = 0;
  #bytes = 0;
  /** Ends the measuring of what is answered now, where somebody measures. */
  #answered: (() => void) | undefined;
  #looking: NodeJS.Timeout | undefined;

  constructor(config: DatabaseClientConfig = {}) {
    // The driver's own deadline strikes as well where the answer has come and nobody had the time to read it.
    super({
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      ...config,
      connectionTimeoutMillis: 0,
    });
    this.#answerWithin = config.answerWithin ?? 60_000;
    this.#connectWithin = config.connectWithin ?? CONNECT_MS;
    this.#unnamed = config.unnamed ?? false;
    this.#name = config.application_name ?? "plat";
    const answered = () => {
      this.#answered?.();
      this.#answered = undefined;
    };
    this.on("drain", () => {
      this.#isBusy = false;
      answered();
    });
    this.once("end", () => {
      clearTimeout(this.#looking);
      answered();
    });
  }

  /** @throws where the server cannot be reached, or does not let it in in time */
  override connect(): Promise<DatabaseValue>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<DatabaseValue> | void {
    const late = () => this.#stream.destroy(new Error("The database did not take the connection in time."));
    const step = Math.min(LOOK_MS, this.#connectWithin);
    let left = this.#connectWithin;
    let isOver = false;
    const look = () => {
      left -= step;
      if (left > 0) timer = setTimeout(look, step);
      else afterReading(() => !isOver && late());
    };
    let timer = setTimeout(look, step);
    const over = () => {
      isOver = true;
      clearTimeout(timer);
    };
    if (!callback) return super.connect().finally(over);
    super.connect((error: Error) => {
      over();
      callback(error);
    });
  }

  get #stream() {
    return (this as unknown as Inside).connection.stream;
  }

  // What it takes and gives has many types, and they stay those of `Client`.
  override query(...statement: DatabaseValue[]): DatabaseValue {
    if (!this.#isBusy) {
      this.#isBusy = true;
      this.#answered = this.#measure(statement[0]);
      this.#silence = 0;
      this.#looking ??= this.#lookLater();
    }
    const [first, ...others] = statement;
    const isNamed = this.#unnamed && typeof first?.name === "string" && typeof first.submit !== "function";
    const sent = isNamed ? [{ ...first, name: undefined }, ...others] : statement;
    return (super.query as (...statement: DatabaseValue[]) => DatabaseValue).apply(this, sent);
  }

  /** Begins to measure, for metrics, the log of slow statements and traces. */
  #measure(statement: string | { text?: string } | undefined): (() => void) | undefined {
    const startedAt = startTiming(statementTimings);
    const text = typeof statement === "string" ? statement : statement?.text;
    const endSpan = startSpan(() => ({
      name: /^\s*([a-z]+)/i.exec(text ?? "")?.[1]?.toUpperCase() ?? "QUERY",
      kind: "client",
      attributes: {
        "db.system.name": "postgresql",
        "db.query.text": text?.slice(0, SPAN_TEXT_LENGTH),
        "plat.pool": this.#name,
      },
    }));
    if (startedAt === undefined) return endSpan;
    const context = workContext.getStore();
    return () => {
      endSpan?.();
      const ms = performance.now() - startedAt;
      statementTimings.publish({ pool: this.#name, ms, text, context } satisfies StatementTiming);
    };
  }

  #lookLater(): NodeJS.Timeout {
    const step = Math.min(LOOK_MS, this.#answerWithin);
    return setTimeout(() => this.#look(step), step).unref();
  }

  // Looked at rather than told of: a listener would be called for each piece of a large answer.
  #look(step: number): void {
    this.#looking = undefined;
    if (!this.#isBusy) return;
    const { bytesRead } = this.#stream;
    if (bytesRead === this.#bytes) this.#silence += step;
    else {
      this.#bytes = bytesRead;
      this.#silence = 0;
    }
    if (this.#silence < this.#answerWithin) this.#looking = this.#lookLater();
    else
      afterReading(() => {
        if (this.#isBusy && this.#stream.bytesRead === bytesRead)
          this.#stream.destroy(new NoAnswerError(this.#answerWithin));
        else this.#looking ??= this.#lookLater();
      });
  }

  /** Says goodbye, and hangs up where nobody answers that within two seconds. */
  override end(): Promise<void>;
  override end(callback: (error?: Error) => void): void;
  override end(callback?: (error?: Error) => void): Promise<void> | void {
    const cut = setTimeout(() => this.#stream.destroy(), END_MS);
    this.once("end", () => clearTimeout(cut));
    if (callback) {
      super.end((error?: Error) => {
        clearTimeout(cut);
        callback(error);
      });
      return;
    }
    return super.end().finally(() => clearTimeout(cut));
  }
}
