import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { contentType } from "../../src/files/contentType.ts";

let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "plat-types-"));
});
afterAll(() => rm(folder, { recursive: true, force: true }));

async function typeOf(bytes: Buffer): Promise<string | undefined> {
  const path = join(folder, "file");
  await writeFile(path, bytes);
  return contentType(path, bytes.length);
}

/** A ZIP of uncompressed parts; the checksums are zero, because they are not read. */
function zip(parts: Record<string, string>): Buffer {
  const local: Buffer[] = [];
  const central: Buffer[] = [];
  for (const [name, text] of Object.entries(parts)) {
    const header = Buffer.alloc(30);
    header.write("PK\x03\x04", "latin1");
    header.writeUInt32LE(text.length, 18);
    header.writeUInt32LE(text.length, 22);
    header.writeUInt16LE(name.length, 26);
    local.push(header, Buffer.from(name + text));
    const entry = Buffer.alloc(46);
    entry.write("PK\x01\x02", "latin1");
    entry.writeUInt16LE(name.length, 28);
    central.push(entry, Buffer.from(name));
  }
  return Buffer.concat([...local, ...central, Buffer.from("PK\x05\x06".padEnd(22, "\0"), "latin1")]);
}

/** A compound file whose directory contains one stream. */
function compound(stream: string): Buffer {
  const bytes = Buffer.alloc(2048);
  bytes.writeBigUInt64BE(0xd0cf11e0a1b11ae1n);
  bytes.writeUInt16LE(9, 30);
  bytes.writeUInt32LE(1, 48);
  for (const [i, name] of ["Root Entry", stream].entries()) {
    bytes.write(name, 1024 + i * 128, "utf16le");
    bytes.writeUInt16LE((name.length + 1) * 2, 1024 + i * 128 + 64);
  }
  return bytes;
}

const office = "application/vnd.openxmlformats-officedocument";
test.each<[string, Buffer, string | undefined]>([
  [
    "Word",
    zip({ "[Content_Types].xml": "<x/>", "word/document.xml": "<x/>" }),
    `${office}.wordprocessingml.document`,
  ],
  [
    "Excel",
    zip({ "[Content_Types].xml": "<x/>", "xl/workbook.xml": "<x/>" }),
    `${office}.spreadsheetml.sheet`,
  ],
  [
    "PowerPoint",
    zip({ "[Content_Types].xml": "<x/>", "ppt/presentation.xml": "<x/>" }),
    `${office}.presentationml.presentation`,
  ],
  [
    "OpenDocument",
    zip({ mimetype: "application/vnd.oasis.opendocument.text", "content.xml": "<x/>" }),
    "application/vnd.oasis.opendocument.text",
  ],
  [
    "Word with macros",
    zip({ "[Content_Types].xml": "<x/>", "word/document.xml": "<x/>", "word/vbaProject.bin": "x" }),
    undefined,
  ],
  ["any other ZIP", zip({ "setup.exe": "MZ" }), undefined],
  ["old Word", compound("WordDocument"), "application/msword"],
  ["old Excel", compound("Workbook"), "application/vnd.ms-excel"],
  ["old PowerPoint", compound("PowerPoint Document"), "application/vnd.ms-powerpoint"],
  ["an installer, which is a compound file too", compound("Tables"), undefined],
  ["text in another encoding than UTF-8", Buffer.from("Gr\xfc\xdfe", "latin1"), undefined],
  ["text with a NUL", Buffer.from("a\0b"), undefined],
  ["a table", Buffer.from('a,b\n"1,5",2\n'), "text/csv"],
  [
    "one line of prose with commas",
    Buffer.from("Dear Ada, thank you, and see you soon.\nOwen\n"),
    "text/plain",
  ],
  ["HTML", Buffer.from("  <!doctype html><script>"), undefined],
])("%s", async (_what, bytes, type) => {
  expect(await typeOf(bytes)).toBe(type);
});
