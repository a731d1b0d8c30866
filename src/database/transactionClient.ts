import type { PoolClient } from "pg";
import type { PgClientQuery, PgClientResult } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import type { OperationWork } from "../admission/operationWork.ts";
import { parseLsn, REACHED_COLUMN } from "./position.ts";
import { afterExpiry, type Deadlines, type Stale } from "./deadlines.ts";
import type { Session } from "./session.ts";
import type { Setter } from "./serverSettings.ts";
import { announceStatement } from "./statementEvents.ts";

/** Thrown if a callback swallowed the error that aborted its transaction: nothing was stored. */
export class TransactionAbortedError extends Error {
  readonly code = "25P02";

  constructor() {
    super("The transaction was rolled back, since one of its statements had failed");
    this.name = "TransactionAbortedError";
  }
}

/**
 * The client inside `withTransaction`: BEGIN and the settings are sent together, then one round trip per statement,
 * and the COMMIT is awaited. A nested `withTransaction` is a savepoint.
 *
 * No named prepared statements are used here: one that is refused as outdated would abort the whole transaction.
 */
export class TransactionClient implements NodePostgresPgClient {
  readonly rawClient: PoolClient;
  readonly #session: Session;
  readonly #depth: number;
  #last: Promise<unknown> = Promise.resolve();

  private constructor(session: Session, depth: number) {
    this.#session = session;
    this.#depth = depth;
    this.rawClient = session.client;
  }

  /**
   * Runs the callback in a transaction under the settings; any error in it, or at the commit, rolls everything back.
   * @param work gets the position of the data, if there are settings
   */
  static async run<T>(
    session: Session,
    setterFor: (stale?: Stale) => Setter | null,
    deadlines: Deadlines | undefined,
    work: OperationWork | undefined,
    callback: (client: TransactionClient) => Promise<T>,
  ): Promise<T> {
    const begin = { text: "begin" };
    const client = new TransactionClient(session, 1);
    try {
      const hasSettings = setterFor() !== null;
      const { rows } = await afterExpiry(session, deadlines, (stale) =>
        session.send(hasSettings ? [begin, setterFor(stale)!] : [begin], true),
      );
      if (work && hasSettings) work.reached(parseLsn((rows as string[][])[0]!.at(-1)!));
      const result = await callback(client);
      await client.#last;
      const { command, behind } = await session.send(
        [{ text: "commit" }],
        true,
        work?.changes ? `select ${REACHED_COLUMN}` : undefined,
      );
      if (command === "ROLLBACK") throw new TransactionAbortedError();
      if (behind !== undefined) work!.committed(parseLsn(behind));
      return result;
    } catch (error) {
      await client.#last;
      await rollBack(session);
      throw error;
    }
  }

  query<TData>({ text, values, arrayMode }: PgClientQuery): Promise<PgClientResult<TData>> {
    return this.#enqueue(async () => {
      announceStatement(text, values);
      const { rows, rowCount, notices } = await this.#session.send([{ text, values }], arrayMode === true);
      return { rows: rows as TData[], rowCount, notices };
    });
  }

  withTransaction<T>(callback: (client: this) => Promise<T>): Promise<T> {
    const savepoint = `plat_${this.#depth}`;
    return this.#enqueue(async () => {
      await this.#session.send([{ text: `savepoint ${savepoint}` }], true);
      const inner = new TransactionClient(this.#session, this.#depth + 1);
      try {
        const result = await callback(inner as this);
        await inner.#last;
        await this.#session.send([{ text: `release savepoint ${savepoint}` }], true);
        return result;
      } catch (error) {
        await inner.#last;
        await this.#session.send([{ text: `rollback to savepoint ${savepoint}` }], true).catch(() => {});
        throw error;
      }
    });
  }

  #enqueue<T>(task: () => Promise<T>): Promise<T> {
    const result = this.#last.then(task);
    const settled = (): void => {};
    this.#last = result.then(settled, settled);
    return result;
  }
}

/**
 * Ends an open transaction. Failures are not reported: the connection is then not idle, and the adaptor discards it.
 */
async function rollBack(session: Session): Promise<void> {
  if (session.client.getTransactionStatus() === "I") return;
  await session.send([{ text: "rollback" }], true).catch(() => {});
}
