import type { Pool } from "pg";

export interface ScriptedDatabase {
  pool: Pool;
  /** The statements that it was asked, with their values. */
  asked: [text: string, ...values: unknown[]][];
  /** What each connection was given back with. */
  released: unknown[];
}

/**
 * A database by a script, for what is around it: each statement gets the rows of the first pattern that it fits, and fails where these are
 * an error. What statements do is tested with the real one.
 */
export function scriptedDatabase(answers: readonly [RegExp, unknown[] | Error][]): ScriptedDatabase {
  const asked: ScriptedDatabase["asked"] = [];
  const released: unknown[] = [];
  const query = async (statement: string | { text: string; values?: unknown[] }, given?: unknown[]) => {
    const { text, values = given ?? [] } = typeof statement === "string" ? { text: statement } : statement;
    asked.push([text, ...values]);
    const rows = answers.find(([pattern]) => pattern.test(text))?.[1] ?? [];
    if (rows instanceof Error) throw rows;
    return { rows };
  };
  const connect = async () => ({ query, release: (failure?: unknown) => void released.push(failure) });
  return { pool: { query, connect } as unknown as Pool, asked, released };
}
