import type { ClientBase } from "pg";
import { markdownTable } from "./table.ts";

/** What may be done how often, as a Markdown table, from the rows that the database decides by. */
export async function limitsTable(database: ClientBase): Promise<string> {
  const { rows } = await database.query<{ name: string; most: string; within: string; description: string }>(
    `select name, to_char(most, 'FM999,999,999') as most, within::text, description from app_private.limits order by name`,
  );
  return markdownTable(
    ["Name", "At most", "Within", "Of what"],
    rows.map(({ name, most, within, description }) => [`\`${name}\``, most, spoken(within), description]),
  );
}

/** An interval as PostgreSQL writes it, in words. */
function spoken(within: string): string {
  const [, hours = "0", minutes = "0"] = /^(\d+):(\d+):\d+$/.exec(within) ?? [];
  const amount = (n: number, unit: string) => (n === 0 ? [] : [`${n} ${unit}${n === 1 ? "" : "s"}`]);
  const words = [...amount(Number(hours), "hour"), ...amount(Number(minutes), "minute")].join(" ");
  return words || within;
}
