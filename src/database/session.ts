import type { ClientBase, DatabaseError, PoolClient } from "pg";
import { DatabaseClient } from "./client.ts";
import { closesConnection, isStaleStatement } from "./databaseErrors.ts";
import { FusedQuery, toWire, type BatchResult, type Meter, type Step } from "./fusedQuery.ts";
import { StatementCache, type PreparedStatement } from "./statementCache.ts";

/** A statement to send; with a `key`, the connection keeps it prepared. */
export interface Statement {
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
  readonly key?: string | undefined;
}

/** Result of the last statement of a batch. */
export interface SessionResult extends BatchResult {
  readonly notices: Notice[];
  readonly behind?: string | undefined;
}

/** A notice as the executor expects it: the driver's fields, positions as numbers. */
export type Notice = ReturnType<typeof toNotice>;

const sessions = new WeakMap<ClientBase, Session>();

/** State kept per pool connection for its lifetime. */
export class Session {
  readonly client: PoolClient;
  /** Counts received bytes for the current operation. */
  meter: Meter | undefined;
  /** Receives notices for the current operation. */
  onNotice: ((notice: Notice) => void) | undefined;
  readonly #statements: StatementCache | null;
  readonly #parserFor = (type: number) => this.client.getTypeParser(type, "text");
  #notices: Notice[] = [];
  #lost = false;

  private constructor(client: PoolClient, preparedStatements: number) {
    this.client = client;
    this.#statements = preparedStatements === 0 ? null : new StatementCache(preparedStatements);
    client.on("notice", (raised) => {
      const notice = toNotice(raised);
      this.#notices.push(notice);
      this.onNotice?.(notice);
    });
    // The pool only listens while a connection is idle; an unhandled error of one in use would crash the process. The
    // pending query reports the error to its caller.
    client.on("error", () => {});
  }

  static of(client: PoolClient, preparedStatements: number): Session {
    const known = sessions.get(client);
    if (known !== undefined) return known;
    const session = new Session(client, preparedStatements);
    sessions.set(client, session);
    return session;
  }

  /** Extends the response timeout of the client to the `statement_timeout` of this transaction. */
  async extendResponseTimeout(): Promise<void> {
    const { rows } = await this.send(
      [{ text: "select setting::int from pg_settings where name = 'statement_timeout'" }],
      true,
    );
    if (this.client instanceof DatabaseClient) this.client.extendResponseTimeout((rows as number[][])[0]![0]);
  }

  resetResponseTimeout(): void {
    if (this.client instanceof DatabaseClient) this.client.extendResponseTimeout();
  }

  /**
   * Whether the connection can be reused: not if it is lost, whatever the callback made of that error, and not with
   * an open or failed transaction, which would leak its role to the next request.
   */
  get reusable(): boolean {
    return !this.#lost && this.client.getTransactionStatus() === "I";
  }

  /**
   * Sends the statements as one batch, in one round trip, and returns the result of the last one. If the server refuses
   * a prepared statement as outdated, it is prepared again and the batch is sent a second time: the refusal undid the
   * whole batch. Batches that begin or continue an explicit transaction must not use keys for that reason.
   *
   * @param behind a statement that runs after the commit, in the same round trip: the last column of its row, as text,
   * is `behind`
   * @param isRepeated whether this is the second time
   * @throws {DatabaseError} the server's refusal, also one at the commit
   * @throws {DatabaseConnectionError} the connection is lost
   */
  async send(
    statements: readonly Statement[],
    arrayMode: boolean,
    behind?: string,
    isRepeated = false,
  ): Promise<SessionResult> {
    // All values first: one that cannot be converted must not leave a statement claimed.
    const values = statements.map((statement) => toWire(statement.values));
    const steps = statements.map(({ text, key }, index): Step => {
      const prepared = key === undefined ? null : (this.#statements?.claim(key, text) ?? null);
      return { text, values: values[index]!, prepared };
    });
    const next =
      behind === undefined
        ? undefined
        : new FusedQuery([{ text: behind, values: [], prepared: null }], {
            closing: [],
            arrayMode: true,
            parserFor: this.#parserFor,
          });
    const query = new FusedQuery(steps, {
      closing: this.#statements?.takeClosing() ?? [],
      arrayMode,
      parserFor: this.#parserFor,
      meter: this.meter,
      behind: next,
    });
    this.#notices = [];
    try {
      this.client.query(query);
      if (!next) {
        const { rows, rowCount, command, before } = await query.result;
        return { rows, rowCount, command, before, notices: this.#notices };
      }
      this.client.query(next);
      const [done, after] = await Promise.allSettled([query.result, next.result]);
      if (done.status === "rejected") throw done.reason;
      const [row] = after.status === "fulfilled" ? (after.value.rows as string[][]) : [];
      // It is committed, whatever happened to the connection since.
      if (after.status === "rejected") this.#lost = true;
      return { ...done.value, notices: this.#notices, behind: row?.at(-1) };
    } catch (error) {
      if (query.isCut || closesConnection(error)) this.#lost = true;
      const suspects = steps.map((step) => step.prepared).filter((prepared) => prepared !== null);
      this.#forget(suspects, isStaleStatement(error));
      const isPrepared = statements.some(({ key }) => key !== undefined);
      if (isRepeated || !isPrepared || !isStaleStatement(error)) throw error;
    }
    return this.send(statements, arrayMode, behind, true);
  }

  /** A statement that never ran to completion may or may not exist on the server; its name is abandoned. */
  #forget(statements: readonly PreparedStatement[], all: boolean): void {
    for (const statement of statements) {
      if (all || !statement.ready) this.#statements?.forget(statement);
    }
  }
}

function toNotice(notice: Partial<DatabaseError>) {
  const { severity, message, code, detail, hint, position, internalPosition, internalQuery, where } = notice;
  const { schema, table, column, dataType, constraint, file, line, routine } = notice;
  const number = (text: string | undefined): number | undefined =>
    text === undefined ? undefined : Number(text);
  return {
    severity: (severity ?? "NOTICE") as "DEBUG" | "LOG" | "INFO" | "NOTICE" | "WARNING",
    message: message ?? "",
    code,
    detail,
    hint,
    position: number(position),
    internalPosition: number(internalPosition),
    internalQuery,
    where,
    schema,
    table,
    column,
    dataType,
    constraint,
    file,
    line: number(line),
    routine,
  };
}
