import type { ClientBase } from "pg";
import { markdownTable } from "./markdownTable.ts";

/** The columns of import files as Markdown, from the rows of the database: one section with a table per import. */
export async function importColumns(database: ClientBase): Promise<string> {
  const { rows } = await database.query<{
    operation: string;
    name: string;
    required: boolean;
    spellings: string[];
    description: string;
  }>(
    `select c.operation, app_hidden.camel(c.column_name) as name, c.required, c.spellings, c.description
     from app_hidden.import_columns c order by c.operation, c.position`,
  );
  return [...new Set(rows.map(({ operation }) => operation))]
    .map((operation) => {
      const columns = rows.filter((row) => row.operation === operation);
      return `## ${operation}\n\n${markdownTable(
        ["Column", "Also", "What it holds"],
        columns.map(({ name, required, spellings, description }) => [
          `\`${name}\`${required ? " (required)" : ""}`,
          spellings.join(", ") || "–",
          description,
        ]),
      )}`;
    })
    .join("\n\n");
}
