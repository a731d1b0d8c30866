import { openAsBlob } from "node:fs";
import { basename } from "node:path";
import { type Command, exitCodes, text, UsageError } from "../command.ts";
import { partOf } from "../output.ts";
import { operation } from "../queries.ts";

interface RowError {
  row: number;
  column: string | null;
  code: string;
  message: string;
}

interface Imported {
  createdCount: number;
  updatedCount: number;
  skippedCount: number;
  failedCount: number;
  errors: RowError[] | null;
}

const kinds: Readonly<Record<string, [field: string, input: string]>> = {
  leads: ["importLeads", "ImportLeadsInput"],
  units: ["importUnits", "ImportUnitsInput"],
  buyers: ["importBuyers", "ImportBuyersInput"],
};

export const importCommand: Command = {
  name: "import",
  summary: "Import leads, units or buyers from a CSV file",
  usage: "leads | units | buyers FILE",
  details:
    "Rows that are refused are listed with their line and their reason, and the others are imported; the exit code is 1 if any row was refused. With --dry-run nothing is kept.",
  options: {
    project: { type: "string", value: "SLUG", description: "Project to import into, by id or slug." },
    "update-existing": {
      type: "boolean",
      description: "Change records that are there already instead of leaving them.",
    },
    "dry-run": { type: "boolean", description: "Check the file; nothing is kept." },
  },
  examples: ["plat import leads leads.csv --project larkfield-gardens --dry-run"],
  async run(context) {
    const { positionals, out, values, signal } = context;
    const [kind = "", file] = positionals;
    const found = kinds[kind];
    const projectId = text(context, "project");
    if (!found || !file) throw new UsageError("Say what to import and the file: plat import leads FILE.");
    if (!projectId) throw new UsageError("Say into which project: --project SLUG.");
    const [field, input] = found;
    const document = operation<Record<string, Imported>, { input: object }>(
      `mutation ($input: ${input}!) { ${field}(input: $input) { createdCount updatedCount skippedCount failedCount errors { row column code message } } }`,
    );
    const blob = new File([await openAsBlob(file)], basename(file), { type: "text/csv" });
    const bar = out.progress("Sending");
    const client = await context.connect();
    const answer = await client
      .request(
        document,
        {
          input: {
            projectId,
            file: blob,
            ...(values["update-existing"] && { updateExisting: true }),
            ...(values["dry-run"] && { dryRun: true }),
          },
        },
        { signal, timeoutMs: 600_000, onProgress: (progress) => bar.at(partOf(progress)) },
      )
      .finally(() => bar.end());
    const { errors, ...counts } = answer[field]!;
    if (out.json) out.data({ ...counts, errors: errors ?? [] });
    else {
      out.line(
        `${counts.createdCount} created, ${counts.updatedCount} updated, ${counts.skippedCount} skipped, ${counts.failedCount} refused${values["dry-run"] ? "; nothing was kept" : ""}.`,
      );
      for (const { row, column, code, message } of errors ?? [])
        out.problem(`row ${row}${column ? `, ${column}` : ""}: ${code}: ${message}`);
    }
    return counts.failedCount > 0 ? exitCodes.failed : 0;
  },
};
