import type { Pool, PoolClient } from "pg";
import type { PgClientQuery, PgClientResult } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import type { HeldTransaction, OperationWork } from "../admission/operationWork.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { withIdsApart } from "./batchedLookups.ts";
import type { DatabaseValue } from "./databaseValue.ts";
import { afterExpiry, type Deadlines } from "./deadlines.ts";
import { Preloaded } from "./preloaded.ts";
import { isPlannedForValues } from "./planMark.ts";
import { makeSetter, type PgSettings } from "./serverSettings.ts";
import { Session, type Statement } from "./session.ts";
import { announceStatement } from "./statementEvents.ts";

/** An event as the viewer reads it. */
export interface DryEvent {
  name: string;
  subjectType: string;
  subjectId: string;
  organizationId: string | null;
  projectId: string | null;
  changes: Record<string, [unknown, unknown]> | null;
  data: Record<string, unknown>;
}

/** What a dry run has done, and what would follow; see migrations/objects/15-operations/dry-runs.sql. */
export interface DryRunFindings {
  events: DryEvent[];
  moreEvents: number;
  jobs: { task: string; id?: string; runAt?: string }[];
  notifications: { kind: string; members: number }[];
  webhooks: { id: string; url: string; events: string[] }[];
  workflows: {
    workflowId: string;
    organizationId: string;
    name: string;
    event: string;
    subjectId: string;
    condition?: unknown;
    data?: object;
  }[];
}

/** Where the statements go. */
export interface DryRunPlace {
  readonly pool: Pool;
  readonly deadlines: Deadlines | undefined;
  readonly connections: FairSemaphore | undefined;
  readonly preparedStatements: number;
}

/** It holds locks that others wait for, so it ends by itself: then its connection is closed, and nothing was kept. */
const longestMs = 10_000;
/** Events that are told one by one. */
const mostEvents = 200;

/** Refused as it would be at the commit, and then as it was: the next statement is of another field. */
const asAtCommit = [{ text: "set constraints all immediate" }, { text: "set constraints all deferred" }];

/**
 * Runs all statements of an operation in one transaction that is never committed: each in a savepoint, so that what is refused is
 * undone alone, as in a transaction of its own. `COMMIT` is not among the statements that this file can send.
 */
export class DryRun implements HeldTransaction {
  readonly #work: OperationWork;
  #opened: Promise<{ session: Session; connection: PoolClient; release: () => void }> | undefined;
  #last: Promise<unknown> = Promise.resolve();
  #ended: Promise<DryRunFindings | undefined> | undefined;

  constructor(work: OperationWork) {
    this.#work = work;
  }

  /** What `withPgClient` does, in this transaction. */
  async run<T>(
    place: DryRunPlace,
    settings: PgSettings | null,
    callback: (client: NodePostgresPgClient) => T | Promise<T>,
  ): Promise<T> {
    if (this.#ended) throw new Error("The dry run has ended already.");
    this.#opened ??= this.#open(place, settings);
    const { session } = await this.#opened;
    return callback(new DryRunClient(this, session, settings));
  }

  /** Tells what was done, as this viewer may know it, and rolls it back. Nothing where no statement was sent. */
  end(): Promise<DryRunFindings | undefined> {
    return (this.#ended ??= this.#undo());
  }

  async #undo(): Promise<DryRunFindings | undefined> {
    const held = await this.#opened?.catch(() => undefined);
    if (!held) return undefined;
    const { session, connection, release } = held;
    try {
      await this.#last.catch(() => {});
      if (session.client.getTransactionStatus() !== "T") return undefined;
      const ask = async <T>(statements: Statement[]) =>
        ((await session.send(statements, true)).rows as [[T]])[0][0];
      const text = "select app_hidden.dry_run_events($1)";
      const seen = await ask<Pick<DryRunFindings, "events" | "moreEvents">>([{ text, values: [mostEvents] }]);
      // The rest is for the service, which tells of it what the viewer may know.
      const asService = { text: "select pg_catalog.set_config('role', 'none', true)" };
      const rest = await ask<Omit<DryRunFindings, "events" | "moreEvents">>([
        asService,
        { text: "select app_private.dry_run_effects()" },
      ]);
      return { ...seen, ...rest };
    } finally {
      try {
        if (session.client.getTransactionStatus() !== "I") await session.send([{ text: "rollback" }], true);
      } finally {
        session.meter = undefined;
        session.onNotice = undefined;
        // One that is still in a transaction is thrown away, which ends it too.
        connection.release(!session.reusable);
        release();
      }
    }
  }

  /** One after the other, whoever asks. */
  enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    const settled = (): void => {};
    this.#last = result.then(settled, settled);
    return result;
  }

  async #open(
    { pool, deadlines, connections, preparedStatements }: DryRunPlace,
    settings: PgSettings | null,
  ) {
    const held = await connections?.acquire(this.#work.party);
    try {
      const connection = await pool.connect();
      const session = Session.of(connection, preparedStatements);
      try {
        session.meter = (count) => this.#work.read(count);
        session.onNotice = ({ code }) => this.#work.noticed(code);
        const setter = makeSetter(settings, deadlines?.probe);
        const begin = [
          { text: "begin" },
          { text: `set local transaction_timeout = ${longestMs}` },
          { text: "select pg_catalog.set_config('plat.dry_run', 'on', true)" },
        ];
        await afterExpiry(session, deadlines, () =>
          session.send(setter === null ? begin : [...begin, setter], true),
        );
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

/** The client that the callbacks of a dry run get. */
class DryRunClient implements NodePostgresPgClient {
  readonly #run: DryRun;
  readonly #session: Session;
  readonly #settings: PgSettings | null;

  constructor(run: DryRun, session: Session, settings: PgSettings | null) {
    this.#run = run;
    this.#session = session;
    this.#settings = settings;
  }

  /** @throws always: a statement sent past this client could commit. */
  get rawClient(): PoolClient {
    throw new Error("A dry run has no connection to hand out.");
  }

  query<TData>(query: PgClientQuery): Promise<PgClientResult<TData>> {
    return this.#run.enqueue(() => this.#undoable(query.text, () => this.#send<TData>(query)));
  }

  withTransaction<T>(callback: (client: this) => Promise<T>): Promise<T> {
    const inner = { query: (query: PgClientQuery) => this.#send(query) } as unknown as this;
    return this.#run.enqueue(() => this.#undoable("", () => callback(inner)));
  }

  async #undoable<T>(text: string, work: () => Promise<T>): Promise<T> {
    // PERF: a read may need a plan for its values, see RequestSettings.
    const planned = isPlannedForValues(text) ? { plan_cache_mode: "force_custom_plan" } : {};
    const setter = makeSetter({ ...this.#settings, ...planned });
    const savepoint = { text: "savepoint of_field" };
    try {
      await this.#session.send(setter === null ? [savepoint] : [savepoint, setter], true);
      const result = await work();
      await this.#session.send([...asAtCommit, { text: "release savepoint of_field" }], true);
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
      [{ text: withIdsApart(text), values: sent }],
      arrayMode === true,
    );
    return { rows: rows as TData[], rowCount, notices };
  }
}
