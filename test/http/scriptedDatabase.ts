import type { Pool } from "pg";

export interface ScriptedDatabase {
  pool: Pool;
  /** The received statements, with their values. */
  queries: [text: string, ...values: unknown[]][];
  /** The argument with which each connection was released. */
  released: unknown[];
}

/**
 * A scripted database: each statement gets the rows of the first matching pattern, or fails if these are an
 * error. The statements themselves are tested with a real database.
 */
export function scriptedDatabase(answers: readonly [RegExp, unknown[] | Error][]): ScriptedDatabase {
  const queries: ScriptedDatabase["queries"] = [];
  const released: unknown[] = [];
  const query = async (statement: string | { text: string; values?: unknown[] }, given?: unknown[]) => {
    const { text, values = given ?? [] } = typeof statement === "string" ? { text: statement } : statement;
    queries.push([text, ...values]);
    const rows = answers.find(([pattern]) => pattern.test(text))?.[1] ?? [];
    if (rows instanceof Error) throw rows;
    return { rows };
  };
  const connect = async () => ({ query, release: (failure?: unknown) => void released.push(failure) });
  return { pool: { query, connect } as unknown as Pool, queries, released };
}
