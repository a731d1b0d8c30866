/**
 * Connections with timeouts. A host that disappears closes no connection: TCP retransmits for a quarter of an hour,
 * and a proxy without its upstream accepts everything and never answers. So each wait has a deadline on the client
 * side.
 */
import { callbackify } from "node:util";
import { Client, type ClientConfig, DatabaseError } from "pg";
import { hostsOf } from "../base/databaseHosts.ts";
import { startSpan } from "../tracing/spans.ts";
import { workContext } from "../base/workContext.ts";
import { primaryOf } from "./hosts.ts";
import { startTiming, type StatementTiming, statementTimings } from "./timings.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/** Milliseconds to connect, including authentication. */
const CONNECT_MS = 10_000;
/** Milliseconds that the server has to close a connection after Terminate. */
const END_MS = 2_000;
/** Milliseconds by which a response may exceed its `statement_timeout` before the connection is closed. */
export const GRACE_MS = 3_000;
/** Idle milliseconds before TCP keep-alive probes; ten probes, one per second. */
const KEEP_ALIVE_MS = 10_000;
/** Minimum interval of checks on a connection that awaits a response. */
const LOOK_MS = 1_000;
/** Characters of a statement shown in a span. */
const SPAN_TEXT_LENGTH = 500;

export interface DatabaseClientConfig extends ClientConfig {
  /**
   * Milliseconds of silence during a statement after which the connection is closed. Must exceed the
   * `statement_timeout` of the connection, so that the server answers first, with a reason. Default: one minute.
   */
  answerWithin?: number;
  /** Milliseconds to connect, including authentication. Default: ten seconds. */
  connectWithin?: number;
  /** Whether the names of statements are omitted, so that the server keeps none prepared. */
  unnamed?: boolean;
}

/**
 * If the event loop was blocked, data that has arrived is read first. For the same reason time is counted in checks,
 * each of which counts as one however long it was delayed.
 */
function afterReading(work: () => void): void {
  setImmediate(() => setImmediate(work));
}

/** The server was silent for too long, so the connection was closed. The outcome of the statement is unknown. */
export class NoAnswerError extends Error {
  readonly code = "ETIMEDOUT";

  constructor(answerWithin: number) {
    super(`The database has not answered for ${answerWithin / 1000} seconds.`);
    this.name = "NoAnswerError";
  }
}

/** Members of a client that the types of `pg` lack. */
interface Inside {
  host: string;
  port: number;
  connection: {
    stream: { bytesRead: number; destroy(error?: Error): void };
    on(
      event: "parameterStatus",
      listener: (message: { parameterName: string; parameterValue: string }) => void,
    ): void;
  };
}

/** The client of node-postgres, with timeouts for connecting, each response, and disconnecting. */
export class DatabaseClient extends Client {
  readonly #name: string;
  readonly #defaultAnswerWithin: number;
  #answerWithin: number;
  readonly #connectWithin: number;
  readonly #unnamed: boolean;
  readonly #several: ReturnType<typeof hostsOf>;
  /** Whether a response is awaited, for how many milliseconds nothing was received, and the byte count until then. */
  #isBusy = false;
  #silence = 0;
  #bytes = 0;
  /** Ends the measurement of the current statement, if there is one. */
  #answered: (() => void) | undefined;
  #checking: NodeJS.Timeout | undefined;

  constructor(config: DatabaseClientConfig = {}) {
    const several = hostsOf(config.connectionString ?? "");
    // The driver's own timeout also fires if the response has arrived but the event loop had no time to read it.
    super({
      keepAlive: true,
      keepAliveInitialDelayMillis: KEEP_ALIVE_MS,
      ...config,
      ...(several && { connectionString: several.connectionString }),
      connectionTimeoutMillis: 0,
    });
    this.#several = several;
    this.#defaultAnswerWithin = config.answerWithin ?? 60_000;
    this.#answerWithin = this.#defaultAnswerWithin;
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
      clearTimeout(this.#checking);
      answered();
    });
    // A server that dies may say so in the packet in which it accepted the connection: before the client knows that
    // there is one, and listens. An error without a listener would end the process; this one fails the next statement.
    this.on("error", () => {});
  }

  /** @throws if the server is unreachable, or does not accept the connection in time */
  override connect(): Promise<DatabaseValue>;
  override connect(callback: (error: Error) => void): void;
  override connect(callback?: (error: Error) => void): Promise<DatabaseValue> | void {
    const connected = this.#several ? this.#connectToPrimary(this.#several) : this.#open();
    if (!callback) return connected;
    callbackify(() => connected)(callback);
  }

  /** Looks for the primary among the hosts only if the last known one is gone. */
  async #connectToPrimary({
    hosts,
    connectionString,
  }: NonNullable<ReturnType<typeof hostsOf>>): Promise<this> {
    const primary = primaryOf(hosts);
    const host = await primary.find(connectionString);
    const inside = this as unknown as Inside;
    inside.host = host.host;
    inside.port = host.port;
    let isStandby = false;
    inside.connection.on("parameterStatus", ({ parameterName, parameterValue }) => {
      if (parameterName === "in_hot_standby") isStandby = parameterValue === "on";
    });
    try {
      await this.#open();
    } catch (error) {
      // A server that refuses the login is there; one that starts up or shuts down may have been replaced.
      if (!(error instanceof DatabaseError) || error.code?.startsWith("57")) primary.forget(host);
      throw error;
    }
    if (!isStandby) {
      const leave = () => this.#stream.destroy(new Error("Another host has become the primary."));
      this.once("end", primary.joined(host, connectionString, leave));
      return this;
    }
    primary.forget(host);
    await this.end();
    throw new Error(`The host ${host.host}:${host.port} is a standby.`);
  }

  async #open(): Promise<this> {
    const late = () => this.#stream.destroy(new Error("The database did not take the connection in time."));
    const step = Math.min(LOOK_MS, this.#connectWithin);
    let left = this.#connectWithin;
    let isOver = false;
    const check = () => {
      left -= step;
      if (left > 0) timer = setTimeout(check, step);
      else afterReading(() => !isOver && late());
    };
    let timer = setTimeout(check, step);
    const over = () => {
      isOver = true;
      clearTimeout(timer);
    };
    try {
      await super.connect();
      return this;
    } finally {
      over();
    }
  }

  get #stream() {
    return (this as unknown as Inside).connection.stream;
  }

  // Has many overloads, which stay those of `Client`.
  override query(...statement: DatabaseValue[]): DatabaseValue {
    if (!this.#isBusy) {
      this.#isBusy = true;
      this.#answered = this.#measure(statement[0]);
      this.#silence = 0;
      this.#checking ??= this.#checkLater();
    }
    const [first, ...others] = statement;
    const isNamed = this.#unnamed && typeof first?.name === "string" && typeof first.submit !== "function";
    const sent = isNamed ? [{ ...first, name: undefined }, ...others] : statement;
    return (super.query as (...statement: DatabaseValue[]) => DatabaseValue).apply(this, sent);
  }

  /** Starts measuring, for metrics, the slow statement log and traces. */
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

  /**
   * Extends the response timeout, so that the server still answers first.
   * @param statementTimeout of the server for the following statements, in milliseconds; default: resets the timeout
   */
  extendResponseTimeout(statementTimeout?: number): void {
    this.#answerWithin =
      statementTimeout === undefined
        ? this.#defaultAnswerWithin
        : Math.max(this.#defaultAnswerWithin, statementTimeout + GRACE_MS);
  }

  #checkLater(): NodeJS.Timeout {
    const step = Math.min(LOOK_MS, this.#answerWithin);
    return setTimeout(() => this.#check(step), step).unref();
  }

  // Polled instead of a listener, which would be called for each chunk of a large response.
  #check(step: number): void {
    this.#checking = undefined;
    if (!this.#isBusy) return;
    const { bytesRead } = this.#stream;
    if (bytesRead === this.#bytes) this.#silence += step;
    else {
      this.#bytes = bytesRead;
      this.#silence = 0;
    }
    if (this.#silence < this.#answerWithin) this.#checking = this.#checkLater();
    else
      afterReading(() => {
        if (this.#isBusy && this.#stream.bytesRead === bytesRead)
          this.#stream.destroy(new NoAnswerError(this.#answerWithin));
        else this.#checking ??= this.#checkLater();
      });
  }

  /** Sends Terminate, and closes the socket if there is no answer within two seconds. */
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
