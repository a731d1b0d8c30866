/** CSV as written by spreadsheets, parsed as a stream. */
import { CsvError, parse, type Parser } from "csv-parse";
import type { Readable } from "node:stream";
import { CodedError } from "../base/errors.ts";

export interface CsvRow {
  /** Row number as in spreadsheets, counting empty lines; the first is 1. */
  row: number;
  /** Trimmed; null if empty. */
  cells: (string | null)[];
}

/** Maximum characters of a row: a missing closing quote must not read the entire file into memory. */
const longestRow = 1_000_000;

/** Comma or semicolon, whichever occurs more often in the first line outside quotes. */
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
  return new CodedError("BAD_USER_INPUT", `Row ${row} is not valid CSV: ${reason}.`, { field: "file", row });
}

/**
 * Rows that are not blank, in batches as they arrive.
 * @throws CodedError BAD_USER_INPUT with the row number if the content is not CSV
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
      // PERF: rows are collected here instead of as stream objects, which takes 50 times as long for short ones.
      on_record(record: string[], { empty_lines }) {
        count += 1;
        // PERF: the parser treats each row as the first one; for a row of another length it would create an error
        // that is never used and takes 20 times as long as the row.
        (parser!.info as { records: number }).records = 0;
        const cells = record.map((cell) => cell.trim() || null);
        if (cells.some((cell) => cell !== null)) rows.push({ row: count + empty_lines, cells });
        return null;
      },
    });
  let failure: unknown;
  /** Feeds the parser a chunk, or the end, and waits until it is consumed. */
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
