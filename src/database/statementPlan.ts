import type { PoolClient } from "pg";
import { wantsCustomPlan } from "./customPlan.ts";
import { rewriteStatement } from "./rewriteStatement.ts";

/** Milliseconds for planning a statement. */
const PLAN_MS = 2_000;

/**
 * The plan of a statement, without executing it: the one that the API uses, which is made for any values unless the statement is marked.
 * @param client in a transaction under the settings of a viewer
 * @returns a line each
 */
export async function statementPlan(
  client: PoolClient,
  { text, values }: { text: string; values: readonly unknown[] },
): Promise<string[]> {
  await client.query(`set local statement_timeout = ${PLAN_MS}`);
  const isForValues = wantsCustomPlan(text);
  const { rows } = await client.query(
    `explain (settings off${isForValues ? "" : ", generic_plan"}) ${rewriteStatement(text)}`,
    isForValues ? [...values] : [],
  );
  return (rows as { "QUERY PLAN": string }[]).map((line) => line["QUERY PLAN"]);
}
