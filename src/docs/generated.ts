import { readFile } from "node:fs/promises";
import { join } from "node:path";
import type { ClientBase } from "pg";
import { errorsTable } from "./errorsTable.ts";
import { reportColumns } from "./reportColumns.ts";
import { importColumns } from "./importColumns.ts";
import { logEventsTable } from "./logEventsTable.ts";
import { limitsTable, tiersTable } from "./limitsTable.ts";
import { operationsTable } from "./operationsTable.ts";
import { permissionsTable } from "./permissionsTable.ts";
import { queryLimitsTable } from "./queryLimitsTable.ts";
import { stateMachines } from "./stateMachines.ts";
import { workflowOperators, workflowSteps, workflowVariables } from "./workflowTables.ts";

/** The generated parts of the guides: file, name of the markers around the part, and its generator. */
const parts: [file: string, mark: string, write: (database: ClientBase) => string | Promise<string>][] = [
  ["docs/accounts.md", "limits", limitsTable],
  ["docs/accounts.md", "tiers", tiersTable],
  ["docs/errors.md", "errors", errorsTable],
  ["docs/exports.md", "columns", reportColumns],
  ["docs/imports.md", "columns", importColumns],
  ["docs/operating.md", "log-events", logEventsTable],
  ["docs/operations.md", "queries", () => operationsTable("Query")],
  ["docs/operations.md", "mutations", () => operationsTable("Mutation")],
  ["docs/permissions.md", "members", (database) => permissionsTable(database, false)],
  ["docs/permissions.md", "affiliated", (database) => permissionsTable(database, true)],
  ["docs/queries.md", "query-limits", queryLimitsTable],
  ["docs/states.md", "states", stateMachines],
  ["docs/workflows.md", "operators", workflowOperators],
  ["docs/workflows.md", "steps", workflowSteps],
  ["docs/workflows.md", "variables", workflowVariables],
];

export const repository = join(import.meta.dirname, "../..");

/**
 * All guides with generated parts: their current text, and the expected one.
 * @param database a migrated one
 * @throws Error if a guide lacks the markers of one of its parts
 */
export async function guides(database: ClientBase): Promise<Map<string, { is: string; shall: string }>> {
  const texts = new Map<string, { is: string; shall: string }>();
  for (const [file, mark, write] of parts) {
    const is = texts.get(file)?.is ?? (await readFile(join(repository, file), "utf8"));
    const text = texts.get(file)?.shall ?? is;
    const marks = new RegExp(`(<!-- ${mark} -->\n)[^]*?(<!-- /${mark} -->)`);
    if (!marks.test(text)) throw new Error(`${file} lacks the marks <!-- ${mark} --> and <!-- /${mark} -->.`);
    const part = await write(database);
    texts.set(file, {
      is,
      shall: text.replace(marks, (_all, open: string, close: string) => `${open}\n${part}\n\n${close}`),
    });
  }
  return texts;
}
