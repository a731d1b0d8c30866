import { createWriteStream } from "node:fs";
import { rename, rm } from "node:fs/promises";
import { basename } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { type Command, type Context, text, UsageError } from "../command.ts";
import { operation } from "../queries.ts";

interface Export {
  id: string;
  status: string;
  progress: number;
  filename: string;
  url: string | null;
  error: string | null;
  rowCount: number | null;
}

const FIELDS = "id status progress filename url error rowCount";
const BEGIN: Readonly<Record<string, { mutation: string; input: string }>> = {
  report: { mutation: "exportCustomReport", input: "ExportCustomReportInput" },
  saved: { mutation: "runCustomExport", input: "RunCustomExportInput" },
  organization: { mutation: "exportOrganization", input: "ExportOrganizationInput" },
};
const STATE = operation<{ export: Export | null }, { id: string }>(
  `query ($id: ID!) { export(id: $id) { ${FIELDS} } }`,
);
const CANCEL = operation<unknown, { input: { id: string } }>(
  "mutation ($input: CancelExportInput!) { cancelExport(input: $input) { id } }",
);
const GOES_ON = new Set(["PENDING", "PROCESSING"]);

async function inputOf(context: Context, kind: string): Promise<object> {
  const [, id] = context.positionals;
  if (kind === "organization")
    return { organizationId: await context.organization(), ...(context.values["files"] && { files: true }) };
  if (!id) throw new UsageError(`Say which one: plat export ${kind} ID.`);
  const format = text(context, "format")?.toUpperCase();
  return kind === "report" ? { id, format: format ?? "CSV" } : { id };
}

/** Writes to a temporary file first, so that a file with the final name is always complete. */
async function download(url: string, file: string, signal: AbortSignal): Promise<void> {
  const response = await fetch(url, { signal });
  if (!response.ok || !response.body)
    throw new Error(`The file could not be read (HTTP ${response.status}).`);
  const part = `${file}.part`;
  try {
    await pipeline(Readable.fromWeb(response.body as never), createWriteStream(part), { signal });
    await rename(part, file);
  } finally {
    await rm(part, { force: true });
  }
}

export const exportCommand: Command = {
  name: "export",
  summary: "Write a report, a saved export or the whole organization to a file",
  usage: "report ID | saved ID | organization",
  details: "Waits until the service has written the export, and downloads it. Ctrl-C cancels it.",
  options: {
    format: {
      type: "string",
      value: "FORMAT",
      description: "Of a report: CSV, JSONL, PDF or XLSX; CSV if omitted.",
    },
    files: { type: "boolean", description: "Of an organization: with its files." },
    out: {
      type: "string",
      value: "FILE",
      description: "Where to; under the name that the service gives if omitted.",
    },
  },
  examples: ["plat export organization --files --out larkfield.zip"],
  async run(context) {
    const { positionals, out, signal } = context;
    const [kind = ""] = positionals;
    const begin = BEGIN[kind];
    if (!begin) throw new UsageError("Say what to export: report ID, saved ID, or organization.");
    const client = await context.connect();
    const input = await inputOf(context, kind);
    const { mutation } = begin;
    const started = await client.request(
      operation<Record<string, Export>, { input: object }>(
        `mutation ($input: ${begin.input}!) { ${mutation}(input: $input) { ${FIELDS} } }`,
      ),
      { input },
    );
    let state = started[mutation]!;
    const bar = out.progress("Exporting");
    while (GOES_ON.has(state.status)) {
      bar.at(state.progress);
      await new Promise((done) => setTimeout(done, 500));
      if (signal.aborted) {
        await client.request(CANCEL, { input: { id: state.id } }).catch(() => {});
        return;
      }
      state = (await client.request(STATE, { id: state.id })).export ?? { ...state, status: "CANCELLED" };
    }
    bar.end();
    if (state.status !== "COMPLETED" || !state.url)
      throw new Error(`The export is ${state.status}${state.error ? `: ${state.error}` : ""}.`);
    const file = text(context, "out") ?? basename(state.filename);
    await download(state.url, file, signal);
    if (out.json) out.data({ ...state, file });
    else out.line(`${file}${state.rowCount === null ? "" : `, ${state.rowCount} rows`}`);
  },
};
