/** An archive (ZIP) of all data of an organization: JSON lines for each kind of record, the files, and a manifest. */
import { Readable, type PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { ZipFile } from "yazl";
import { ignoreEarlyErrors } from "../base/ignoreEarlyErrors.ts";
import type { FileStore } from "../providers/files/index.ts";
import type { ExportedFile, ExportSource } from "./exportSource.ts";

interface ArchiveOptions {
  store: Pick<FileStore, "get">;
  /** Called with the number of further records written. */
  wrote: (rows: number) => void;
}

const text = { compressionLevel: 6 };
/** Images and PDFs are already compressed. */
const content = { compress: false };

/**
 * Writes one part after the other, with back-pressure, so that only one batch of records is in memory. The transaction of the source ends
 * before files are copied. The manifest lists files that the store does not have.
 * @returns the archive; closing it stops the work
 */
export function organizationArchive(source: ExportSource, { store, wrote }: ArchiveOptions): Readable {
  const archive = new ZipFile();
  const output = ignoreEarlyErrors(archive.outputStream as PassThrough);

  async function part(name: string, stream: Readable, options: object): Promise<void> {
    ignoreEarlyErrors(stream);
    archive.addReadStream(stream, name, options);
    // Writing stops when the reader stops.
    const stop = () => stream.destroy();
    output.once("close", stop);
    await finished(stream).finally(() => output.off("close", stop));
  }

  async function* linesOf(batches: AsyncIterable<string[]>): AsyncGenerator<string> {
    for await (const lines of batches) {
      yield `${lines.join("\n")}\n`;
      wrote(lines.length);
    }
  }

  async function fill(): Promise<void> {
    for (const { name, lines } of source.tables)
      await part(`${name}.jsonl`, Readable.from(linesOf(lines()), { objectMode: false }), text);
    await source.close();
    let files = 0;
    const missing: ExportedFile[] = [];
    for await (const batch of source.files())
      for (const file of batch) {
        const found = await store.get(file.checksum);
        if (!found) missing.push(file);
        else {
          await part(`files/${file.record}/${file.id}/${safeName(file.filename)}`, found, content);
          files += 1;
        }
      }
    const records = Object.fromEntries(source.tables.map(({ name, count }) => [name, count]));
    const manifest = { exportedAt: new Date(), records, files, missing };
    archive.addBuffer(Buffer.from(JSON.stringify(manifest, undefined, 2)), "manifest.json", text);
    archive.end();
  }
  fill().catch((error: Error) => output.destroy(error));
  return output;
}

/** A file name that stays in its folder, whatever program unpacks it. */
const safeName = (name: string): string => name.replace(/[/\\:\p{Cc}]/gu, "_").replace(/^\.+/, "_") || "file";
