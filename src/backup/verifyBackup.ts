/** Reads a base backup back, and compares each file with the server's manifest. */
import { createHash } from "node:crypto";
import { createReadStream } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { pipeline } from "node:stream/promises";
import { createGunzip } from "node:zlib";
import { extract } from "tar-stream";

interface Manifest {
  Files: { Path: string; Size: number; Checksum: string }[];
}

/** A file or folder of the cluster. */
export interface Entry {
  name: string;
  type: "file" | "directory";
  /** Permission bits. */
  mode: number;
}

/**
 * Reads a base backup completely.
 * @param folder of the backup.
 * @param receive called for each entry; unread content is skipped.
 * @throws Error that names the first file that is missing or differs from what the server sent.
 */
export async function readBackup(
  folder: string,
  receive: (entry: Entry, content: AsyncIterable<Buffer>) => Promise<void> = async () => {},
): Promise<{ files: number; bytes: number }> {
  const damaged = (name: string, cause?: unknown) =>
    new Error(`The backup ${folder} is damaged: ${name} is not what the server sent.`, { cause });
  const manifest = JSON.parse(await readFile(join(folder, "backup_manifest"), "utf8")) as Manifest;
  const expected = new Map(manifest.Files.map((file) => [file.Path, file]));
  const archive = extract();
  const [read, unpacked] = await Promise.allSettled([
    readEntries(),
    // Ends the entries with its error.
    pipeline(createReadStream(join(folder, "base.tar.gz")), createGunzip(), archive),
  ]);
  if (read.status === "rejected") {
    const { reason } = read;
    // Damaged bytes can be unpacked to something that is no archive. Other errors are of the disk, or of the receiver.
    const isUnreadable =
      unpacked.status === "rejected" &&
      unpacked.reason === reason &&
      (reason as NodeJS.ErrnoException).syscall === undefined;
    throw isUnreadable ? damaged("base.tar.gz", reason) : reason;
  }
  return { files: manifest.Files.length, bytes: read.value };

  async function readEntries(): Promise<number> {
    let bytes = 0;
    try {
      for await (const stream of archive) {
        const { name, type, mode = 0 } = stream.header;
        if (type !== "file" && type !== "directory") throw damaged(name);
        const hash = createHash("sha256");
        let size = 0;
        const content = (async function* () {
          for await (const chunk of stream as AsyncIterable<Buffer>) {
            hash.update(chunk);
            size += chunk.length;
            yield chunk;
          }
        })();
        await receive({ name, type, mode: mode & 0o7777 }, content);
        for await (const _ of content);
        const file = expected.get(name);
        if (file && (file.Size !== size || file.Checksum !== hash.digest("hex"))) throw damaged(name);
        expected.delete(name);
        bytes += size;
      }
    } catch (error) {
      archive.destroy();
      throw error;
    }
    const [missing] = expected.keys();
    if (missing !== undefined) throw damaged(missing);
    return bytes;
  }
}
