/** Answers queries that are compiled; see compiledQueries.ts. */
import type { WithPgClient } from "postgraphile/@dataplan/pg";
import { fullPages } from "../limits/defaultPages.ts";
import type { OperationWork } from "../admission/operationWork.ts";
import type { Positions } from "../database/position.ts";
import { queryLimits } from "../admission/queryLimits.ts";
import { NotWritten, type SelectResult } from "./answerWriter.ts";
import type { CompiledQuery } from "./compiledQueries.ts";

/**
 * Sends the statements of a compiled query and writes its answer.
 * @returns the JSON text; undefined if the plan must answer instead, which also reports errors of statements
 */
export async function answerCompiled(
  query: CompiledQuery,
  variables: Readonly<Record<string, unknown>>,
  settings: Record<string, string>,
  work: OperationWork,
  withPgClient: WithPgClient,
  positions: Positions,
): Promise<string | undefined> {
  const { statements, cost, part, copies, planning, write, pages } = query;
  work.measured(cost, part, copies);
  work.isQuery = true;
  const send = async ({ text, name, values, shape }: (typeof statements)[number]): Promise<SelectResult> => {
    const statement = { text, name, values: values(variables), arrayMode: true };
    const { rows } = await withPgClient(settings, (client) => client.query<unknown>(statement as never));
    return { ...shape, items: rows } as unknown as SelectResult;
  };
  const results: SelectResult[] = [];
  if (statements.length === 1) {
    try {
      results.push(await send(statements[0]!));
    } catch (error) {
      work.failed(error);
      return undefined;
    }
  } else {
    // All have ended before the plan is used instead, which determines which of several fields has the error.
    for (const one of await Promise.allSettled(statements.map(send)))
      if (one.status === "fulfilled") results.push(one.value);
    if (results.length < statements.length) {
      work.bytesRead = 0;
      return undefined;
    }
  }
  const bytes = work.bytesRead;
  let data: string;
  let full = "";
  try {
    const written = write(results);
    data = written.text;
    if (written.isFull)
      full = `,"fullPages":${JSON.stringify(fullPages(JSON.parse(data), pages, variables))}`;
  } catch (error) {
    if (!(error instanceof NotWritten)) throw error;
    work.bytesRead = 0;
    return undefined;
  }
  const position = work.position === undefined ? "" : `,"position":"${positions.write(work.position)}"`;
  const text = `{"data":${data},"extensions":{"cost":{"requested":${cost},"limit":${queryLimits.cost},"planning":{"requested":${planning},"limit":${queryLimits.planning}},"bytes":{"read":${bytes},"limit":${queryLimits.bytes}}}${full}${position}}}`;
  if (text.length <= queryLimits.bytes) return text;
  work.bytesRead = 0;
  return undefined;
}
