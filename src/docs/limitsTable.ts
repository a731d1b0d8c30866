import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

/** Rate limits as a Markdown table, from the rows that the database applies. */
export async function limitsTable(database: ClientBase): Promise<string> {
  const { rows } = await database.query<{ name: string; most: string; within: string; description: string }>(
    `select name, to_char(most, 'FM999,999,999') as most, within::text, description from app_private.limits order by name`,
  );
  return markdownTable(
    ["Name", "At most", "Within", "Of what"],
    rows.map(({ name, most, within, description }) => [`\`${name}\``, most, spoken(within), description]),
  );
}

/** Sending quotas of organizations as a Markdown table, from the rows that the database applies. */
export async function tiersTable(database: ClientBase): Promise<string> {
  const { rows } = await database.query<Record<"name" | "mails" | "messages" | "description", string>>(
    `select name, to_char(mails, 'FM999,999,999') as mails, to_char(messages, 'FM999,999,999') as messages, description
     from app_private.sending_tiers t order by t.mails`,
  );
  return markdownTable(
    ["Tier", "Mails in 24 hours", "Text messages in 24 hours", "When"],
    rows.map(({ name, mails, messages, description }) => [`\`${name}\``, mails, messages, description]),
  );
}

/** An interval in the format of PostgreSQL, in words. */
function spoken(within: string): string {
  const [, hours = "0", minutes = "0"] = /^(\d+):(\d+):\d+$/.exec(within) ?? [];
  const amount = (n: number, unit: string) => (n === 0 ? [] : [`${n} ${unit}${n === 1 ? "" : "s"}`]);
  const words = [...amount(Number(hours), "hour"), ...amount(Number(minutes), "minute")].join(" ");
  return words || within;
}
