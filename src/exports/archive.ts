/** An archive (ZIP) of all that an organization has: JSON lines for each kind of record, the files, and a manifest. */
import { Readable, type PassThrough } from "node:stream";
import { finished } from "node:stream/promises";
import { ZipFile } from "yazl";
import { ignoreEarlyErrors } from "../base/ignoreEarlyErrors.ts";
import type { FileStore } from "../providers/files/index.ts";
import type { ExportedFile, ExportSource } from "./source.ts";

interface ArchiveOptions {
  store: Pick<FileStore, "get">;
  /** Told how many further records are written. */
  wrote: (rows: number) => void;
}

const text = { compressionLevel: 6 };
/** Pictures and PDFs are compressed already. */
const content = { compress: false };

/**
 * Writes one part after the other, none before the former was taken, so that no more than a batch of records is in memory. The transaction of the
 * source ends before files are copied. What the store lacks is told by the manifest.
 * @returns the archive; closing it ends the work
 */
export function organizationArchive(source: ExportSource, { store, wrote }: ArchiveOptions): Readable {
  const archive = new ZipFile();
  const output = ignoreEarlyErrors(archive.outputStream as PassThrough);

  async function part(name: string, stream: Readable, options: object): Promise<void> {
    ignoreEarlyErrors(stream);
    archive.addReadStream(stream, name, options);
    // Whoever reads no further has no more of it written.
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

/** A name of a file that stays in its folder, whatever unpacks it. */
const safeName = (name: string): string => name.replace(/[/\\:\p{Cc}]/gu, "_").replace(/^\.+/, "_") || "file";
