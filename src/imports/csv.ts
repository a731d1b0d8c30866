/** CSV as people's spreadsheets write it, read piece by piece. */
import { CsvError, parse, type Parser } from "csv-parse";
import type { Readable } from "node:stream";
import { CodedError } from "../base/errors.ts";

export interface CsvRow {
  /** Place in the file as spreadsheets count, empty lines too; the first is 1. */
  row: number;
  /** Trimmed; null where empty. */
  cells: (string | null)[];
}

/** Characters of one row: an end of a quote that is missing does not take the whole file into memory. */
const longestRow = 1_000_000;

/** Commas or semicolons, whichever the first line has more of; what is quoted does not count. */
function separatorOf(begin: Buffer): "," | ";" {
  const text = begin
    .toString("utf8")
    .replace(/"(?:[^"]|"")*"/g, "")
    .trimStart();
  const line = /^[^\r\n]*/.exec(text)![0];
  return line.split(";").length > line.split(",").length ? ";" : ",";
}

function refusal(error: unknown, row: number): unknown {
  if (!(error instanceof CsvError)) return error;
  const reason =
    error.code === "CSV_QUOTE_NOT_CLOSED" || error.code === "CSV_MAX_RECORD_SIZE"
      ? "a quote begins there that has no end"
      : "a quote stands where none can be; a cell with quotes is quoted, and each quote in it doubled";
  return new CodedError("BAD_USER_INPUT", `Row ${row} is no CSV: ${reason}.`, { field: "file", row });
}

/**
 * The rows that are not blank, as many at a time as a piece of the content has.
 * @throws CodedError BAD_USER_INPUT with the row where the content is no CSV
 */
export async function* csvRows(content: Readable): AsyncGenerator<CsvRow[]> {
  let rows: CsvRow[] = [];
  let count = 0;
  let parser: Parser | undefined;
  const parserFor = (begin: Buffer) =>
    parse({
      bom: true,
      delimiter: separatorOf(begin),
      trim: true,
      skip_empty_lines: true,
      relax_column_count: true,
      max_record_size: longestRow,
      // PERF: rows are taken here rather than as objects of a stream, which takes 50 times as long for short ones.
      on_record(record: string[], { empty_lines }) {
        count += 1;
        // PERF: to the parser each row is the first one; for one of another length than the first it would make an error that
        // nobody sees and that takes 20 times as long as the row.
        (parser!.info as { records: number }).records = 0;
        const cells = record.map((cell) => cell.trim() || null);
        if (cells.some((cell) => cell !== null)) rows.push({ row: count + empty_lines, cells });
        return null;
      },
    });
  let failure: unknown;
  /** Hands the parser a piece, or the end, and waits until it was read. */
  const feed = (piece: Buffer | null) =>
    new Promise<void>((resolve, reject) => {
      const done = (error?: Error | null) => (error ? reject(error) : resolve());
      if (piece === null) parser!.end(done);
      else parser!.write(piece, done);
    });
  try {
    for await (const piece of content as AsyncIterable<Buffer>) {
      parser ??= parserFor(piece)
        .on("error", (error) => (failure = error))
        .resume();
      await feed(piece);
      if (failure !== undefined) throw failure;
      if (rows.length > 0) yield rows;
      rows = [];
    }
    if (parser) await feed(null);
    if (failure !== undefined) throw failure;
    if (rows.length > 0) yield rows;
  } catch (error) {
    throw refusal(failure ?? error, count + (parser?.info.empty_lines ?? 0) + 1);
  } finally {
    parser?.destroy();
  }
}
