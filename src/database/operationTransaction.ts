import type { Pool, PoolClient } from "pg";
import type { PgClientQuery, PgClientResult } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import type { HeldTransaction, OperationWork } from "../admission/operationWork.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { rewriteStatement } from "./rewriteStatement.ts";
import type { DatabaseValue } from "./databaseValue.ts";
import { afterExpiry, type Deadlines } from "./deadlines.ts";
import { Preloaded } from "./preloaded.ts";
import { wantsCustomPlan } from "./customPlan.ts";
import { staleReads } from "./requestSettings.ts";
import { makeSetter, type PgSettings } from "./serverSettings.ts";
import { Session } from "./session.ts";
import { announceStatement } from "./statementEvents.ts";

/** The source of the transaction's connection. */
export interface HeldPlace {
  readonly pool: Pool;
  readonly deadlines: Deadlines | undefined;
  readonly connections: FairSemaphore | undefined;
  readonly preparedStatements: number;
}

/**
 * Time limit of the transaction, since its locks block others. When it expires, the connection is closed and nothing is
 * stored.
 */
const longestMs = 10_000;
/** Executes the deferred checks as a commit would. Later statements, which belong to other fields, defer them again. */
const asAtCommit = [{ text: "set constraints all immediate" }, { text: "set constraints all deferred" }];

/**
 * Runs all statements of an operation in one transaction, each in a savepoint, so that a refusal only rolls back its
 * own statement, as if it had its own transaction. Subclasses decide how it ends; by default it is rolled back.
 */
export abstract class OperationTransaction<Findings> implements HeldTransaction {
  abstract readonly isDry: boolean;
  readonly #work: OperationWork;
  #opened: Promise<{ session: Session; connection: PoolClient; release: () => void }> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #ended: Promise<Findings | undefined> | undefined;

  constructor(work: OperationWork) {
    this.#work = work;
  }

  /** Final statements in the open transaction. @param failed whether a field was refused */
  protected abstract finish(session: Session, failed: boolean): Promise<Findings | undefined>;

  /** Keeps the effects of a statement, if the checks of a commit accept them, and ends its savepoint. */
  async keep(session: Session): Promise<void> {
    await session.send([...asAtCommit, { text: "release savepoint of_field" }], true);
  }

  /** Implements `withPgClient` in this transaction. */
  async run<T>(
    place: HeldPlace,
    settings: PgSettings | null,
    callback: (client: NodePostgresPgClient) => T | Promise<T>,
  ): Promise<T> {
    if (this.#ended) throw new Error("The operation has ended already.");
    this.#opened ??= this.#open(place, settings);
    const { session } = await this.#opened;
    return callback(new HeldClient(this, session, settings));
  }

  /** Ends it once and returns the result; undefined if no statement was sent. */
  end(failed = true): Promise<Findings | undefined> {
    return (this.#ended ??= this.#end(failed));
  }

  async #end(failed: boolean): Promise<Findings | undefined> {
    const held = await this.#opened?.catch(() => undefined);
    if (!held) return undefined;
    const { session, connection, release } = held;
    try {
      await this.#last.catch(() => {});
      if (session.client.getTransactionStatus() !== "T") return undefined;
      return await this.finish(session, failed);
    } finally {
      try {
        if (session.client.getTransactionStatus() !== "I") await session.send([{ text: "rollback" }], true);
      } finally {
        session.meter = undefined;
        session.onNotice = undefined;
        // A connection that is still in a transaction is discarded, which also ends it.
        connection.release(!session.reusable);
        release();
      }
    }
  }

  /** Calls are serialized. */
  enqueue<T>(task: () => Promise<T>): Promise<T> {
    if (this.#ended) return Promise.reject(new Error("The operation has ended already."));
    const result = this.#last.then(task);
    const settled = (): void => {};
    this.#last = result.then(settled, settled);
    return result;
  }

  async #open({ pool, deadlines, connections, preparedStatements }: HeldPlace, settings: PgSettings | null) {
    const held = await connections?.acquire(this.#work.party);
    try {
      const connection = await pool.connect();
      const session = Session.of(connection, preparedStatements);
      try {
        session.meter = (count) => this.#work.read(count);
        session.onNotice = ({ code }) => this.#work.noticed(code);
        const begin = [
          { text: "begin" },
          { text: `set local transaction_timeout = ${longestMs}` },
          ...(this.isDry ? [{ text: "select pg_catalog.set_config('plat.dry_run', 'on', true)" }] : []),
        ];
        await afterExpiry(session, deadlines, (stale) => {
          const setter = makeSetter(settings && { ...settings, ...staleReads(stale) }, deadlines?.probe);
          return session.send(setter === null ? begin : [...begin, setter], true);
        });
        return { session, connection, release: () => held?.() };
      } catch (error) {
        if (session.client.getTransactionStatus() !== "I")
          await session.send([{ text: "rollback" }], true).catch(() => {});
        session.meter = undefined;
        session.onNotice = undefined;
        connection.release(!session.reusable);
        throw error;
      }
    } catch (error) {
      held?.();
      throw error;
    }
  }
}

/** The client of `withPgClient` callbacks. */
class HeldClient implements NodePostgresPgClient {
  readonly #run: OperationTransaction<unknown>;
  readonly #session: Session;
  readonly #settings: PgSettings | null;

  constructor(run: OperationTransaction<unknown>, session: Session, settings: PgSettings | null) {
    this.#run = run;
    this.#session = session;
    this.#settings = settings;
  }

  /** @throws always: a statement that bypasses this client could commit. */
  get rawClient(): PoolClient {
    throw new Error("A transaction that is held has no connection to hand out.");
  }

  query<TData>(query: PgClientQuery): Promise<PgClientResult<TData>> {
    return this.#run.enqueue(() => this.#undoable(query.text, () => this.#send<TData>(query)));
  }

  withTransaction<T>(callback: (client: this) => Promise<T>): Promise<T> {
    const inner = { query: (query: PgClientQuery) => this.#send(query) } as unknown as this;
    return this.#run.enqueue(() => this.#undoable("", () => callback(inner)));
  }

  async #undoable<T>(text: string, work: () => Promise<T>): Promise<T> {
    // PERF: a read may need a plan for its values; see RequestSettings.
    const planned = wantsCustomPlan(text) ? { plan_cache_mode: "force_custom_plan" } : {};
    const setter = makeSetter({ ...this.#settings, ...planned });
    const savepoint = { text: "savepoint of_field" };
    try {
      await this.#session.send(setter === null ? [savepoint] : [savepoint, setter], true);
      const result = await work();
      await this.#run.keep(this.#session);
      return result;
    } catch (error) {
      await this.#session.send([{ text: "rollback to savepoint of_field" }], true).catch(() => {});
      throw error;
    }
  }

  async #send<TData>({ text, values, arrayMode }: PgClientQuery): Promise<PgClientResult<TData>> {
    for (const value of values ?? [])
      if (value instanceof Preloaded)
        await value.load({ query: (query) => this.#send(query as PgClientQuery) as Promise<DatabaseValue> });
    const sent = values?.map((value) => (value instanceof Preloaded ? JSON.stringify(value) : value));
    announceStatement(text, sent);
    const { rows, rowCount, notices } = await this.#session.send(
      [{ text: rewriteStatement(text), values: sent }],
      arrayMode === true,
    );
    return { rows: rows as TData[], rowCount, notices };
  }
}
