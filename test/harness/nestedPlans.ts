import type { Client } from "pg";
import type { Node } from "./explain.ts";

/** What a statement, in all of its executions, did without any result. */
export interface Vain {
  /** Rows that it compared with each other, or read, and dropped. */
  rows: number;
  text: string;
}

type ExplainedNode = Node & { "Rows Removed by Join Filter"?: number; Plans?: ExplainedNode[] };

/** EXPLAIN reports rows as an average per loop. */
function droppedBy(node: ExplainedNode): number {
  const rows = (node["Rows Removed by Filter"] ?? 0) + (node["Rows Removed by Join Filter"] ?? 0);
  return rows * node["Actual Loops"] + (node.Plans ?? []).reduce((sum, below) => sum + droppedBy(below), 0);
}

/**
 * The statement that did most in vain, of all that the work sends and of those in functions and triggers. That grows
 * with the square of the rows where a statement, or one for each row, reads all of them.
 * @param client a superuser's; explains all of its statements from now on
 */
export async function mostInVain(client: Client, work: () => Promise<unknown>): Promise<Vain> {
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
    byText.set(text, (byText.get(text) ?? 0) + droppedBy(plan.Plan));
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
