/** Streams the rows of a CSV file to the operation that imports them. The database defines the columns. */
import type { Readable } from "node:stream";
import { Preloaded, type LoadingClient } from "../database/preloaded.ts";
import type { UploadedFile } from "../files/uploadedFile.ts";
import { csvRows, type CsvRow } from "./csv.ts";

/** Rows that go to the database at a time. */
const batchSize = 2_000;

export interface ImportOf {
  /** The mutation, such as importUnits. */
  operation: string;
  /** Id or slug. */
  project: string;
  file: UploadedFile;
  open(): Promise<Readable>;
}

export class ImportedRows extends Preloaded {
  readonly #of: ImportOf;

  constructor(of: ImportOf) {
    super();
    this.#of = of;
  }

  toJSON(): unknown {
    return this.#of.file.toJSON();
  }

  async load(client: LoadingClient): Promise<void> {
    const { operation, project, open } = this.#of;
    const begin = async (header: readonly (string | null)[]): Promise<(string | null)[]> => {
      const { rows } = await client.query<[(string | null)[]]>({
        text: "select app_hidden.begin_import($1, $2, $3)",
        values: [operation, project, header],
        arrayMode: true,
      });
      return rows[0]![0];
    };
    let columns: (string | null)[] | undefined;
    let waiting: CsvRow[] = [];
    let sending: Promise<unknown> = Promise.resolve();
    /** Sends what waits while the next rows are read. */
    const flush = async (): Promise<void> => {
      await sending;
      if (waiting.length === 0) return;
      const values = [operation, columns!.filter((name) => name !== null), toJson(waiting, columns!)];
      waiting = [];
      sending = client.query({ text: "select app_hidden.add_import_rows($1, $2, $3)", values });
      // The consumer gets the error.
      sending.catch(() => {});
    };
    for await (const rows of csvRows(await open())) {
      columns ??= await begin(rows.shift()!.cells);
      waiting.push(...rows);
      if (waiting.length >= batchSize) await flush();
    }
    if (!columns) await begin([]);
    await flush();
    await sending;
  }
}

/** Rows as JSON: of each, its number, the cells beyond the header (joined), and the cells of the known columns. */
function toJson(rows: readonly CsvRow[], columns: readonly (string | null)[]): string {
  const known = columns.flatMap((name, index) => (name === null ? [] : [index]));
  return JSON.stringify(
    rows.map(({ row, cells }) => {
      const surplus = cells.slice(columns.length).filter((cell) => cell !== null);
      return [
        row,
        surplus.length > 0 ? surplus.join(", ").slice(0, 200) : null,
        ...known.map((index) => cells[index] ?? null),
      ];
    }),
  );
}
