/** The statements of one operation as they were executed, for viewers who may read them. */
import type { PgClientQuery } from "postgraphile/@dataplan/pg";
import type { NodePostgresPgClient } from "postgraphile/adaptors/pg";
import type { StatementTrace } from "../admission/operationWork.ts";

/** A statement of the operation. */
export interface TracedStatement {
  readonly text: string;
  readonly values: readonly unknown[];
  /** From sending it until its result was there, in milliseconds. */
  readonly ms: number;
  /** Rows of its result; null if it was refused. */
  readonly rows: number | null;
}

/** Statements that are kept; of the others, only the number. */
const MOST_STATEMENTS = 50;

/** Collects the statements of one operation. */
export class Trace implements StatementTrace {
  readonly statements: TracedStatement[] = [];
  /** Number of statements that were not kept. */
  more = 0;

  ran(statement: TracedStatement): void {
    if (this.statements.length < MOST_STATEMENTS) this.statements.push(statement);
    else this.more += 1;
  }
}

/** A client whose statements are traced, including those of its transactions. */
export function tracedClient(client: NodePostgresPgClient, trace: StatementTrace): NodePostgresPgClient {
  return {
    get rawClient() {
      return client.rawClient;
    },
    async query<TData>(statement: PgClientQuery) {
      const startedAt = performance.now();
      let rows: number | null = null;
      try {
        const result = await client.query<TData>(statement);
        rows = result.rows.length;
        return result;
      } finally {
        const { text, values = [] } = statement;
        trace.ran({ text, values, ms: performance.now() - startedAt, rows });
      }
    },
    withTransaction: (callback) =>
      client.withTransaction((inner) => callback(tracedClient(inner as NodePostgresPgClient, trace))),
  };
}
