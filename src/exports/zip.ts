/** ZIP archives, written from front to back while they are read. */
import { pipeline } from "node:stream";
import { crc32, createDeflateRaw } from "node:zlib";

export interface ZipPart {
  name: string;
  /** Less than 4 GB: more takes fields that spreadsheet programs refuse. */
  content: AsyncIterable<string>;
}

const signature = { part: 0x04034b50, sizes: 0x08074b50, entry: 0x02014b50, end: 0x06054b50 };

/** Version 2.0, sizes behind the content, names in UTF-8, deflated; the first day that there is, as archives are to be the same whenever they are made. */
const traits = [20, 0x0808, 8, 0, 0x21];

/** Numbers as an archive has them: `[value, bytes]` in turns. */
function fields(...numbers: [value: number, bytes: 2 | 4][]): Buffer {
  const buffer = Buffer.alloc(numbers.reduce((sum, [, bytes]) => sum + bytes, 0));
  let at = 0;
  for (const [value, bytes] of numbers) at = buffer.writeUIntLE(value, at, bytes);
  return buffer;
}
const shorts = (values: number[]) => values.map((value): [number, 2] => [value, 2]);

/** What is packed of each part stands behind it, so that no part is kept in memory or on disk. */
export async function* zip(parts: AsyncIterable<ZipPart>): AsyncGenerator<Buffer> {
  const directory: Buffer[] = [];
  let written = 0;
  for await (const { name, content } of parts) {
    const start = written;
    const path = Buffer.from(name);
    const head = Buffer.concat([
      fields([signature.part, 4], ...shorts(traits), [0, 4], [0, 4], [0, 4], [path.length, 2], [0, 2]),
      path,
    ]);
    yield head;
    written += head.length;

    let checksum = 0;
    let size = 0;
    let packed = 0;
    const deflate = createDeflateRaw({ level: 4 });
    async function* measured(): AsyncGenerator<Buffer> {
      for await (const text of content) {
        const bytes = Buffer.from(text);
        checksum = crc32(bytes, checksum);
        size += bytes.length;
        yield bytes;
      }
    }
    // What goes wrong with the content is thrown where the packed bytes are read.
    pipeline(measured, deflate, () => {});
    for await (const bytes of deflate as AsyncIterable<Buffer>) {
      packed += bytes.length;
      yield bytes;
    }
    const sizes: [number, 4][] = [
      [checksum, 4],
      [packed, 4],
      [size, 4],
    ];
    const foot = fields([signature.sizes, 4], ...sizes);
    yield foot;
    written += packed + foot.length;
    directory.push(
      fields(
        [signature.entry, 4],
        ...shorts([traits[0]!, ...traits]),
        ...sizes,
        ...shorts([path.length, 0, 0, 0, 0]),
        [0, 4],
        [start, 4],
      ),
      path,
    );
  }
  const entries = Buffer.concat(directory);
  const amount = directory.length / 2;
  yield entries;
  yield fields(
    [signature.end, 4],
    ...shorts([0, 0, amount, amount]),
    [entries.length, 4],
    [written, 4],
    [0, 2],
  );
}
