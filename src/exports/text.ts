/** Exports as text: CSV and JSONL. */
import { stringify } from "csv-stringify/sync";
import type { ExportColumn, ExportRow } from "./source.ts";

/** Types whose cells a spreadsheet program could take for a formula; of the others it is known what they hold. */
const texts = new Set(["ID", "TEXT", "ENUM", "LIST", "JSON"]);

/** A cell that begins like a formula, also in the full-width forms that some programs read. */
const formula = /^[=+\-@\t\r\n\uff1d\uff0b\uff0d\uff20]/;

/** A cell that no spreadsheet program runs: an apostrophe in front says that it is text. */
export const neutralised = (cell: string): string => (formula.test(cell) ? `'${cell}` : cell);

/** CSV by RFC 4180 in UTF-8; the byte order mark at its beginning is what tells spreadsheet programs so. */
export async function* csvText(
  columns: readonly ExportColumn[],
  batches: AsyncIterable<ExportRow[]>,
): AsyncGenerator<string> {
  const options = { record_delimiter: "windows" } as const;
  const isText = columns.map(({ type }) => texts.has(type));
  yield stringify([columns.map(({ name }) => neutralised(name))], { ...options, bom: true });
  for await (const rows of batches)
    yield stringify(
      rows.map(([, ...cells]) =>
        cells.map((cell, i) => (cell !== null && isText[i] ? neutralised(cell) : cell)),
      ),
      options,
    );
}

/** One JSON object per line; the database has written them. */
export async function* jsonLines(batches: AsyncIterable<ExportRow[]>): AsyncGenerator<string> {
  for await (const rows of batches) yield rows.map(([, line]) => `${line}\n`).join("");
}
