import type { Client } from "pg";
import type { Node } from "./explain.ts";

/** Rows that filters and join filters removed in all executions of a statement. */
export interface RemovedRows {
  rows: number;
  text: string;
}

type ExplainedNode = Node & { "Rows Removed by Join Filter"?: number; Plans?: ExplainedNode[] };

/** EXPLAIN reports rows as an average per loop. */
function removedBy(node: ExplainedNode): number {
  const rows = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  return rows * node["Actual Loops"] + (node.Plans ?? []).reduce((sum, below) => sum + removedBy(below), 0);
}

/**
 * The statement whose filters removed the most rows, of all that the work sends and of those in functions and triggers.
 * Their number grows with the square of the rows where a statement, or one for each row, reads all of them.
 * @param client a superuser's; explains all of its statements from now on
 */
export async function mostRowsRemoved(client: Client, work: () => Promise<unknown>): Promise<RemovedRows> {
  await client.query(
    `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
     set auto_explain.log_timing = off; set auto_explain.log_nested_statements = on; set auto_explain.log_format = json;
     set auto_explain.log_level = notice; set client_min_messages = notice`,
  );
  const byText = new Map<string, number>();
  const read = ({ message = "" }: { message?: string | undefined }) => {
    const start = message.indexOf("plan:\n");
    if (start < 0) return;
    const plan = JSON.parse(message.slice(start + 6)) as { "Query Text": string; Plan: ExplainedNode };
    const text = plan["Query Text"];
    byText.set(text, (byText.get(text) ?? 0) + removedBy(plan.Plan));
  };
  client.on("notice", read);
  try {
    await work();
  } finally {
    client.off("notice", read);
  }
  const [text, rows] = [...byText].reduce((most, one) => (one[1] > most[1] ? one : most), ["", 0]);
  return { rows, text };
}
