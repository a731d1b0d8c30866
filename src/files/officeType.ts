/** Office files: ZIP packages, or the older compound files. Neither has a specific magic number. */

const inZip: readonly [part: string, type: string][] = [
  ["word/document.xml", "application/vnd.openxmlformats-officedocument.wordprocessingml.document"],
  ["xl/workbook.xml", "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"],
  ["ppt/presentation.xml", "application/vnd.openxmlformats-officedocument.presentationml.presentation"],
];

const inCompoundFile: readonly [stream: string, type: string][] = [
  ["WordDocument", "application/msword"],
  ["Workbook", "application/vnd.ms-excel"],
  ["Book", "application/vnd.ms-excel"],
  ["PowerPoint Document", "application/vnd.ms-powerpoint"],
];

/** Names in the central directory of a ZIP, within its last 128 KB. */
function namesInZip(tail: Buffer): string[] {
  const names: string[] = [];
  const mark = Buffer.from("PK\x01\x02", "latin1");
  for (let at = tail.indexOf(mark); at >= 0 && at + 46 <= tail.length; at = tail.indexOf(mark, at + 46)) {
    const length = tail.readUInt16LE(at + 28);
    names.push(tail.toString("latin1", at + 46, at + 46 + length));
  }
  return names;
}

function zipType(head: Buffer, tail: Buffer): string | undefined {
  const names = namesInZip(tail);
  // Macros are programs.
  if (names.some((name) => name.endsWith("vbaProject.bin"))) return undefined;
  const openDocument =
    /^PK.{28}mimetype(application\/vnd\.oasis\.opendocument\.(?:text|spreadsheet|presentation))(?:PK|[^a-z-])/s;
  const declared = openDocument.exec(head.toString("latin1", 0, 200))?.[1];
  if (declared) return declared;
  if (!names.includes("[Content_Types].xml")) return undefined;
  return inZip.find(([part]) => names.includes(part))?.[1];
}

/** Names of streams in the first sectors of the directory; a compound file could also be an installer. */
async function compoundType(
  head: Buffer,
  read: (position: number, length: number) => Promise<Buffer>,
): Promise<string | undefined> {
  const sectorSize = 1 << Math.min(head.readUInt16LE(30), 12);
  const directory = await read((head.readUInt32LE(48) + 1) * sectorSize, 4096);
  for (let at = 0; at + 128 <= directory.length; at += 128) {
    const length = Math.min(directory.readUInt16LE(at + 64), 64);
    const name = directory.toString("utf16le", at, at + Math.max(length - 2, 0));
    const found = inCompoundFile.find(([stream]) => stream === name);
    if (found) return found[1];
  }
  return undefined;
}

/**
 * @param head the first 4 KB of the file
 * @param tail its last 128 KB
 * @returns the type of a Word, Excel, PowerPoint or OpenDocument file without macros; undefined for anything else.
 */
export async function officeType(
  head: Buffer,
  tail: Buffer,
  read: (position: number, length: number) => Promise<Buffer>,
): Promise<string | undefined> {
  if (head.length >= 64 && head.readUInt32BE(0) === 0x504b0304) return zipType(head, tail);
  if (head.length >= 512 && head.readBigUInt64BE(0) === 0xd0cf11e0a1b11ae1n) return compoundType(head, read);
  return undefined;
}
