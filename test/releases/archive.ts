/** Packs folders into compressed archives (ustar, zstd), and unpacks them without external programs. */
import { chmod, lstat, mkdir, readdir, readFile, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { constants, zstdCompressSync, zstdDecompressSync } from "node:zlib";

const block = 512;

/** Packs the contents of a folder, following symbolic links; `keep` selects paths. */
export async function pack(folder: string, keep: (path: string) => boolean): Promise<Buffer> {
  const parts: Buffer[] = [];
  const add = async (path: string): Promise<void> => {
    if (path && !keep(path)) return;
    const names = await readdir(join(folder, path)).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ENOTDIR") throw error;
    });
    const mode = path ? (await lstat(join(folder, path))).mode & 0o777 : 0o711;
    if (names) {
      if (path) parts.push(header(`${path}/`, mode, 0, "5"));
      for (const name of names.toSorted()) await add(path ? `${path}/${name}` : name);
      return;
    }
    const content = await readFile(join(folder, path));
    parts.push(header(path, mode, content.length, "0"), content);
    parts.push(Buffer.alloc((block - (content.length % block)) % block));
  };
  await add("");
  return zstdCompressSync(Buffer.concat([...parts, Buffer.alloc(2 * block)]), {
    params: {
      [constants.ZSTD_c_compressionLevel]: 22,
      [constants.ZSTD_c_enableLongDistanceMatching]: 1,
      [constants.ZSTD_c_windowLog]: 27,
    },
  });
}

/** Unpacks an archive into a folder. */
export async function unpack(archive: Buffer, folder: string): Promise<void> {
  const tar = zstdDecompressSync(archive, { params: { [constants.ZSTD_d_windowLogMax]: 27 } });
  const text = (at: number, length: number) =>
    tar
      .subarray(at, at + length)
      .toString()
      .replace(/\0.*$/s, "");
  const modes: [string, number][] = [];
  for (let at = 0; tar[at] !== 0;) {
    const path = join(folder, text(at, 100));
    const mode = parseInt(text(at + 100, 8), 8);
    const size = parseInt(text(at + 124, 12), 8);
    if (text(at + 156, 1) === "5") await mkdir(path, { recursive: true });
    else {
      await mkdir(dirname(path), { recursive: true });
      await writeFile(path, tar.subarray(at + block, at + block + size));
    }
    modes.push([path, mode]);
    at += block + Math.ceil(size / block) * block;
  }
  for (const [path, mode] of modes.toReversed()) await chmod(path, mode);
}

function header(path: string, mode: number, size: number, type: "0" | "5"): Buffer {
  const bytes = Buffer.alloc(block);
  if (Buffer.byteLength(path) > 100) throw new Error(`The path ${path} is too long for the archive.`);
  const octal = (value: number, length: number) => value.toString(8).padStart(length - 1, "0");
  bytes.write(path, 0);
  bytes.write(octal(mode, 8), 100);
  bytes.write(octal(0, 8), 108);
  bytes.write(octal(0, 8), 116);
  bytes.write(octal(size, 12), 124);
  bytes.write(octal(0, 12), 136);
  bytes.write(" ".repeat(8), 148);
  bytes.write(type, 156);
  bytes.write("ustar\u000000", 257);
  const sum = bytes.reduce((total, byte) => total + byte, 0);
  bytes.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return bytes;
}
