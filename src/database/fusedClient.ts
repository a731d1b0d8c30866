/**
 * The database client for queries. Settings and statement are sent in one round trip; each statement is a separate
 * transaction.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { PoolClient } from "pg";
import type { PgClientQuery, PgClientResult } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import { rewriteStatement } from "./rewriteStatement.ts";
import { withUsedBranches } from "./usedBranches.ts";
import { isRetryable, sqlState } from "./databaseErrors.ts";
import type { OperationWork } from "../admission/operationWork.ts";
import { parseLsn, REACHED_COLUMN } from "./position.ts";
import { awaitReplay, NeedsPrimary } from "./replicas.ts";
import { OUTDATED, type TokenCheck } from "./tokenCheck.ts";
import { afterExpiry, type Deadlines, type Stale } from "./deadlines.ts";
import { Preloaded } from "./preloaded.ts";
import type { Session, Statement } from "./session.ts";
import type { RequestSettings } from "./requestSettings.ts";
import { announceStatement } from "./statementEvents.ts";
import { TransactionClient } from "./transactionClient.ts";
import type { DatabaseValue } from "./databaseValue.ts";

/** Number of retries after 40001 or 40P01. */
const MOST_RETRIES = 5;
const isPreloaded = (value: unknown): value is Preloaded => value instanceof Preloaded;
/** Maximum random pause before each retry, in milliseconds, so that conflicting statements spread out. */
const longestPauseMs = (retries: number) => 20 * 3 ** retries;

/**
 * The client of a `withPgClient` callback. **Each `query` is a separate transaction**, sent in one round trip with its
 * settings. A callback whose statements belong together must use `withTransaction`.
 *
 * Statements run one after the other, in the order of the calls, whether or not the caller awaits each of them.
 * Statements that follow a transaction wait for its end.
 */
export class FusedClient implements NodePostgresPgClient {
  readonly #session: Session;
  readonly #settings: RequestSettings;
  /** Part of prepared statement names: a plan under RLS is made for one role and replanned for another. */
  readonly #role: string;
  readonly #deadlines: Deadlines | undefined;
  /** Called with the position of the data, the statements, and their results. */
  work: OperationWork | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #pending = 0;
  #closed = false;

  /** On a replica: the position that it has to replay first. */
  readonly #notBefore: string | undefined;

  constructor(
    session: Session,
    settings: RequestSettings,
    role: string,
    { deadlines, notBefore }: { deadlines?: Deadlines | undefined; notBefore?: string | undefined } = {},
  ) {
    this.#session = session;
    this.#settings = settings;
    this.#role = role;
    this.#deadlines = deadlines;
    this.#notBefore = notBefore;
  }

  /** @throws always: a statement that bypasses this client would run without role and claims. */
  get rawClient(): PoolClient {
    throw new Error("The raw connection has no role or claims outside of withTransaction");
  }

  /**
   * Runs one statement under the settings and waits for its commit. A statement refused with 40001 (serialization) or
   * 40P01 (deadlock) is retried up to five times, after a growing random pause: it was the entire unit of work, and
   * the server has rolled it back.
   */
  query<TData>(query: PgClientQuery): Promise<PgClientResult<TData>> {
    return this.#enqueue(() => this.#run<TData>(query));
  }

  async #run<TData>(query: PgClientQuery): Promise<PgClientResult<TData>> {
    const { check } = this.#settings;
    // PERF: most statements succeed at once; the failure of any other is that of its first attempt.
    let failed: { readonly error: unknown } | undefined;
    if (!check || check.isCarried)
      try {
        const result = await this.#send<TData>(query, undefined);
        check?.passed();
        this.work?.recording?.ran(query, result.rows);
        return result;
      } catch (error) {
        // Another statement may have had the token looked up again since: this one is sent with the new settings.
        if (check?.isCarried !== false || sqlState(error) !== OUTDATED) failed = { error };
      }
    const attempt = (stale: Stale | undefined): Promise<PgClientResult<TData>> => {
      const first = failed;
      failed = undefined;
      return first ? Promise.reject(first.error) : this.#send<TData>(query, stale);
    };
    for (let retries = 0; ; retries += 1) {
      try {
        const result = await this.#checked(() => afterExpiry(this.#session, this.#deadlines, attempt));
        this.work?.recording?.ran(query, result.rows);
        return result;
      } catch (error) {
        if (retries === MOST_RETRIES || !isRetryable(error) || this.#notBefore !== undefined) throw error;
        await pause(Math.random() * longestPauseMs(retries));
      }
    }
  }

  /** Runs the callback inside BEGIN … COMMIT under the settings; its statements are not retried after a conflict. */
  withTransaction<T>(callback: (client: this) => Promise<T>): Promise<T> {
    return this.#enqueue(() =>
      this.#checked(() => this.#transaction("", (client) => callback(client as unknown as this))),
    );
  }

  /** Refuses further use and waits for statements in progress, so that the connection is returned idle. */
  async close(): Promise<void> {
    this.#closed = true;
    await this.#last;
  }

  /** If the token check refused the settings, before anything else ran, the attempt is repeated under new ones. */
  async #checked<T>(attempt: () => Promise<T>): Promise<T> {
    const { check } = this.#settings;
    if (!check) return attempt();
    if (!check.isCarried) return this.#renewed(check, attempt);
    try {
      const result = await attempt();
      check.passed();
      return result;
    } catch (error) {
      if (sqlState(error) !== OUTDATED) throw error;
    }
    return this.#renewed(check, attempt);
  }

  async #renewed<T>(check: TokenCheck, attempt: () => Promise<T>): Promise<T> {
    await check.renew();
    this.#settings.remake();
    return attempt();
  }

  async #send<TData>(
    { text: original, values, name, arrayMode }: PgClientQuery,
    stale: Stale | undefined,
  ): Promise<PgClientResult<TData>> {
    const { text, form } = withUsedBranches(
      rewriteStatement(original),
      this.#settings.check?.carried?.settings,
    );
    if (values?.some(isPreloaded))
      return this.#sendAfter<TData>(values.filter(isPreloaded), { text, values, arrayMode });
    announceStatement(text, values);
    const statement: Statement = {
      text,
      values,
      key: name == null ? undefined : `${this.#role}\0${name}${form}`,
    };
    const setter = this.#settings.setterFor(text, stale);
    const batch: Statement[] = [];
    if (this.#notBefore !== undefined)
      batch.push({ ...awaitReplay, values: [this.#notBefore], key: awaitReplay.text });
    if (setter !== null) batch.push({ text: setter.text, values: setter.values, key: setter.text });
    batch.push(statement);
    const behind = this.work?.changes ? `select ${REACHED_COLUMN}` : undefined;
    const result = await this.#session.send(batch, arrayMode === true, behind);
    const { rows, rowCount, notices } = result;
    if (setter !== null) this.#reached(result.before);
    if (result.behind !== undefined) this.work?.committed(parseLsn(result.behind));
    return { rows: rows as TData[], rowCount, notices };
  }

  /**
   * In one transaction: the uploads of the values, then the statement. An upload may raise the statement timeout for what
   * follows, up to and including the commit, whose response is awaited for as long.
   */
  async #sendAfter<TData>(
    preloaded: readonly Preloaded[],
    { values, ...query }: { text: string; values: readonly unknown[]; arrayMode: boolean | undefined },
  ): Promise<PgClientResult<TData>> {
    const toText = (value: unknown) => (value instanceof Preloaded ? JSON.stringify(value) : value);
    try {
      return await this.#transaction(query.text, async (client) => {
        for (const value of preloaded) await value.load(client);
        await this.#session.extendResponseTimeout();
        return client.query<TData>({ ...query, values: values.map(toText) as DatabaseValue[] });
      });
    } finally {
      this.#session.resetResponseTimeout();
    }
  }

  #reached(lsn: string | null): void {
    if (lsn !== null) this.work?.reached(parseLsn(lsn));
  }

  /** @param text of its statement, where that is known */
  #transaction<T>(text: string, callback: (client: TransactionClient) => Promise<T>): Promise<T> {
    if (this.#notBefore !== undefined) return Promise.reject(new NeedsPrimary());
    const setterFor = (stale?: Stale) => this.#settings.setterFor(text, stale);
    return TransactionClient.run(this.#session, setterFor, this.#deadlines, this.work, callback);
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    if (this.#closed) return Promise.reject(new Error("This client was already given back to the pool"));
    const result = this.#pending === 0 ? task() : this.#last.then(task);
    this.#pending += 1;
    const settled = (): void => void (this.#pending -= 1);
    this.#last = result.then(settled, settled);
    return result;
  }
}
