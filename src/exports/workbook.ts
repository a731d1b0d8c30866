import { Readable, pipeline } from "node:stream";
import XlsxStream from "xlsx-write-stream";
import type { ExportColumn, ExportRow } from "./source.ts";

type Cell = string | number | Date | null;

const readers: Record<string, (cell: string) => Cell> = {
  INTEGER: Number,
  DECIMAL: Number,
  MONEY: Number,
  // Workbooks know no zones: the database gives local times.
  DATE: (cell) => new Date(`${cell}T00:00:00Z`),
  DATETIME: (cell) => new Date(`${cell}Z`),
};

/** A workbook of one sheet. Texts are cells of their own kind, which no program takes for formulas. */
export function workbook(columns: readonly ExportColumn[], batches: AsyncIterable<ExportRow[]>): Readable {
  const read = columns.map(({ type }) => readers[type] ?? ((cell: string) => cell));
  async function* rows(): AsyncGenerator<Cell[]> {
    yield columns.map(({ name }) => name);
    for await (const batch of batches)
      for (const [, ...cells] of batch) yield cells.map((cell, i) => (cell === null ? null : read[i]!(cell)));
  }
  const stream = new XlsxStream({ shouldFormat: true });
  pipeline(Readable.from(rows()), stream, () => {});
  return stream;
}
