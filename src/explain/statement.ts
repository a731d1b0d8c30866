/** Explains one statement of the API. */
import pg, { escapeLiteral, type ClientBase } from "pg";
import { wantsCustomPlan } from "../database/customPlan.ts";
import { connectionSettings } from "../database/pool.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): string | null } }).utils;

function literal(value: unknown): string {
  const text = prepareValue(value);
  return text === null ? "null" : escapeLiteral(`${text}`);
}

/** Planner settings of connections of the API. */
const ofConnections = Object.fromEntries(connectionSettings({ genericPlans: true }));

/**
 * Executes a statement with these settings, and rolls it back. The plan is the one that the API uses: generic, unless
 * the statement requests a custom plan.
 * @param client of plat_authenticator, or of a login that may become the role of the settings
 * @param settings as created by pgSettings of src/database/claims.ts; they include `role`
 * @param options of EXPLAIN, besides ANALYZE
 * @returns the output: one row of JSON, or one row per line of text
 */
export async function explainStatement(
  client: ClientBase,
  settings: Readonly<Record<string, string>>,
  { text, values = [] }: { text: string; values?: readonly unknown[] },
  options: string,
): Promise<{ "QUERY PLAN": DatabaseValue }[]> {
  await client.query("begin");
  try {
    await client.query("select set_config(s.key, s.value, true) from json_each_text($1) s", [
      JSON.stringify({
        ...ofConnections,
        ...settings,
        plan_cache_mode: wantsCustomPlan(text) ? "force_custom_plan" : "force_generic_plan",
      }),
    ]);
    await client.query(`prepare explained as ${text}`);
    const given = values.length > 0 ? `(${values.map(literal).join(", ")})` : "";
    const { rows } = await client.query(`explain (analyze, ${options}) execute explained${given}`);
    return rows;
  } finally {
    await client.query("rollback");
    await client.query("deallocate all");
  }
}
