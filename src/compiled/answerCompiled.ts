/** Answers queries that are compiled; see compiledQueries.ts. */
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import { fullPages } from "../limits/defaultPages.ts";
import type { OperationWork } from "../limits/operationWork.ts";
import { queryLimits } from "../limits/queryLimits.ts";
import { NotWritten, type SelectResult } from "./answerWriter.ts";
import type { CompiledQuery } from "./compiledQueries.ts";

/**
 * Sends the statement of a compiled query and writes its answer.
 * @returns the JSON text; undefined where the plan has to answer after all. What the statement was refused with, the plan gets in its place
 */
export async function answerCompiled(
  query: CompiledQuery,
  variables: Readonly<Record<string, unknown>>,
  settings: Record<string, string>,
  work: OperationWork,
  withPgClient: WithPgClient,
): Promise<string | undefined> {
  const { statement, cost, part, copies, planning, write, shape, pages } = query;
  work.measured(cost, part, copies);
  let rows: readonly unknown[];
  try {
    const values = query.values(variables);
    ({ rows } = await withPgClient(settings, (client) =>
      client.query<unknown>({ ...statement, values, arrayMode: true } as never),
    ));
  } catch (error) {
    work.failed(error);
    return undefined;
  }
  const bytes = work.bytesRead;
  let data: string;
  let full = "";
  try {
    const written = write({ ...shape, items: rows } as SelectResult);
    data = written.text;
    if (written.isFull)
      full = `,"fullPages":${JSON.stringify(fullPages(JSON.parse(data), pages, variables))}`;
  } catch (error) {
    if (!(error instanceof NotWritten)) throw error;
    work.bytesRead = 0;
    return undefined;
  }
  const text = `{"data":${data},"extensions":{"cost":{"requested":${cost},"limit":${queryLimits.cost},"planning":{"requested":${planning},"limit":${queryLimits.planning}},"bytes":{"read":${bytes},"limit":${queryLimits.bytes}}}${full}}}`;
  if (text.length <= queryLimits.bytes) return text;
  work.bytesRead = 0;
  return undefined;
}
