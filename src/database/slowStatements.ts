import diagnostics from "node:diagnostics_channel";
import type { Logger } from "../base/log.ts";
import { type StatementTiming, statementTimings } from "./timings.ts";

/** Characters of a statement shown in the log. */
const TEXT_LENGTH = 2_000;

/** A statement without role passwords, which cannot be parameters. */
const withoutPasswords = (text: string) => text.replace(/(\bpassword\s+)'(?:[^']|'')*'/gi, "$1'[redacted]'");

/**
 * Logs slow statements with the operation, the viewer's role and the request, or the task and job, but never with
 * values.
 * @param slowMs threshold in milliseconds
 * @returns a function that stops it
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
      "A statement exceeded SLOW_STATEMENTS.",
    );
  };
  diagnostics.subscribe(statementTimings.name, tell);
  return () => void diagnostics.unsubscribe(statementTimings.name, tell);
}
