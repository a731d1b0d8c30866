import diagnostics from "node:diagnostics_channel";
import type { Logger } from "../base/log.ts";
import { type StatementTiming, statementTimings } from "./timings.ts";

/** Characters of a statement that the log shows. */
const TEXT_LENGTH = 2_000;

/** A statement without the passwords of roles, which cannot be parameters. */
const withoutPasswords = (text: string) => text.replace(/(\bpassword\s+)'(?:[^']|'')*'/gi, "$1'[redacted]'");

/**
 * Has the log tell of statements that take long, with the operation, the viewer's role and the request that they were sent for, or the
 * task and its job; never with values.
 * @param slowMs milliseconds from which on a statement is slow
 * @returns what ends it
 */
export function logSlowStatements(log: Pick<Logger, "warn">, slowMs: number): () => void {
  const tell = (message: unknown) => {
    const { pool, ms, text, context } = message as StatementTiming;
    if (ms < slowMs) return;
    log.warn(
      {
        event: "database.slow_statement",
        pool,
        durationMs: Math.round(ms),
        statement: text && withoutPasswords(text).slice(0, TEXT_LENGTH),
        ...context,
      },
      "A statement took long.",
    );
  };
  diagnostics.subscribe(statementTimings.name, tell);
  return () => void diagnostics.unsubscribe(statementTimings.name, tell);
}
