import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

/**
 * The columns of reports and exports as Markdown, from the rows of the database: one section with a table per
 * subject.
 */
export async function reportColumns(database: ClientBase): Promise<string> {
  const { rows } = await database.query<{
    subject: string;
    subject_permission: string;
    name: string;
    type: string;
    permission: string | null;
    is_default: boolean;
    description: string;
  }>(
    `select c.subject, s.permissions[1] as subject_permission, c.name, c.type, c.permission, c.is_default, c.description
     from app_hidden.report_columns c join app_hidden.report_subjects s using (subject)
     order by (select v.ctid from app_public.report_subject_values v where v.value = c.subject), c.position`,
  );
  return [...new Set(rows.map(({ subject }) => subject))]
    .map((subject) => {
      const columns = rows.filter((row) => row.subject === subject);
      return `### ${subject}\n\nRequire the permission \`${columns[0]!.subject_permission}\`.\n\n${markdownTable(
        ["Column", "Type", "By default", "What it holds"],
        columns.map(({ name, type, permission, is_default, description }) => [
          `\`${name}\``,
          type,
          is_default ? "yes" : "–",
          permission === null ? description : `${description} Takes \`${permission}\`.`,
        ]),
      )}`;
    })
    .join("\n\n");
}
