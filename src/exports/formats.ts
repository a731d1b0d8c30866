/** The file formats of exports, and how each is written. */
import { buffer } from "node:stream/consumers";
import { Readable } from "node:stream";
import { ignoreEarlyErrors } from "../base/ignoreEarlyErrors.ts";
import type { FileStore } from "../providers/files/index.ts";
import { sentenceCase, type Pictures } from "./pdf.ts";
import type { ExportLines, ExportSource } from "./exportSource.ts";
import { writeInThread } from "./writing.ts";

export interface Format {
  /** Media type. */
  type: string;
  write(source: ExportSource, of: Writing): Promise<Readable>;
}

export interface Writing {
  subject: string;
  /** Whether it contains a report: a table in PDF, whatever the subject. */
  isReport: boolean;
  filename: string;
  store: FileStore;
  /** Called with the number of further rows written. */
  wrote: (rows: number) => void;
}

export const formats: Readonly<Record<string, Format>> = {
  CSV: {
    type: "text/csv",
    // The byte order mark tells spreadsheet programs that the file is UTF-8.
    write: async ({ header, lines }, { wrote }) => texts(lines, wrote, `\ufeff${header}\r\n`),
  },
  JSONL: {
    type: "application/x-ndjson",
    write: async ({ lines }, { wrote }) => texts(lines, wrote),
  },
  XLSX: {
    type: "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet",
    write: async (source, { subject, wrote }) =>
      writeInThread("WORKBOOK", source, { title: sentenceCase(subject), wrote }),
  },
  ZIP: {
    type: "application/zip",
    write: async (source, { store, wrote }) => {
      const { organizationArchive } = await import("./archive.ts");
      return organizationArchive(source, { store, wrote });
    },
  },
  PDF: {
    type: "application/pdf",
    write: async (source, { subject, isReport, filename: title, store, wrote }) =>
      subject === "FLOOR_PLANS" && !isReport
        ? writeInThread("FLOOR_PLANS", source, { title, wrote, picture: await picturesFrom(store) })
        : writeInThread("TABLE", source, { title, wrote }),
  },
};

/** The lines that the database has formatted. */
function texts(lines: AsyncIterable<ExportLines>, wrote: Writing["wrote"], first?: string): Readable {
  async function* written(): AsyncGenerator<string> {
    if (first !== undefined) yield first;
    for await (const { text, length } of lines) {
      yield text;
      wrote(length);
    }
  }
  return ignoreEarlyErrors(Readable.from(written(), { objectMode: false }));
}

/** Images of the store for pages: in a format that PDF supports, and scaled to the page. */
async function picturesFrom(store: FileStore): Promise<Pictures> {
  const { default: sharp } = await import("sharp");
  return async (key) => {
    const content = await store.get(key);
    if (!content) return undefined;
    return await sharp(await buffer(content), { limitInputPixels: 100_000_000 })
      .rotate()
      .resize(1600, 1600, { fit: "inside", withoutEnlargement: true })
      .flatten({ background: "white" })
      .jpeg({ quality: 82 })
      .toBuffer()
      .catch(() => undefined);
  };
}
