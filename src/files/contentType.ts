/** Detects the type of a content by its bytes; name and type given by the client are ignored. */
import { isUtf8 } from "node:buffer";
import { createReadStream } from "node:fs";
import { open, type FileHandle } from "node:fs/promises";
import { officeType } from "./officeType.ts";

async function read(file: FileHandle, position: number, length: number): Promise<Buffer> {
  const { buffer, bytesRead } = await file.read(Buffer.alloc(length), 0, length, position);
  return buffer.subarray(0, bytesRead);
}

const startsWith = (bytes: Buffer, text: string, at = 0): boolean =>
  bytes.subarray(at, at + text.length).equals(Buffer.from(text, "latin1"));

function binaryType(head: Buffer): string | undefined {
  if (startsWith(head, "\x89PNG\r\n\x1a\n")) return "image/png";
  if (startsWith(head, "\xff\xd8\xff")) return "image/jpeg";
  if (startsWith(head, "GIF87a") || startsWith(head, "GIF89a")) return "image/gif";
  if (startsWith(head, "RIFF") && startsWith(head, "WEBP", 8)) return "image/webp";
  if (startsWith(head, "ftyp", 4) && /avi[fs]/.test(head.toString("latin1", 8, 40))) return "image/avif";
  if (startsWith(head, "%PDF-")) return "application/pdf";
  return undefined;
}

// Anything but tab, line feed, form feed and carriage return.
// oxlint-disable-next-line no-control-regex
const controls = /[\x00-\x08\x0b\x0e-\x1f\x7f]/;

/** Lines with the same number of separators, at least one; quoted ones do not count. */
function looksLikeCsv(text: string): boolean {
  const lines = text
    .replace(/"(?:[^"]|"")*"/g, "")
    .split(/\r?\n/)
    .slice(0, 20);
  // The last line may be truncated.
  const whole = (lines.length > 1 ? lines.slice(0, -1) : lines).filter((line) => line.trim() !== "");
  return [",", ";", "\t"].some((separator) => {
    const counts = whole.map((line) => line.split(separator).length);
    return counts.length > 0 && counts[0]! > 1 && counts.every((count) => count === counts[0]);
  });
}

/** Text in UTF-8 from the first to the last byte; markup, such as SVG or HTML, does not count as text. */
async function textType(path: string): Promise<string | undefined> {
  const decoder = new TextDecoder("utf-8", { fatal: true });
  let begin = "";
  try {
    for await (const chunk of createReadStream(path)) {
      const text = decoder.decode(chunk as Buffer, { stream: true });
      if (controls.test(text)) return undefined;
      if (begin.length < 65_536) begin += text;
    }
    decoder.decode();
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === "ERR_ENCODING_INVALID_ENCODED_DATA") return undefined;
    throw error;
  }
  if (begin.trimStart().startsWith("<")) return undefined;
  return looksLikeCsv(begin.slice(0, 65_536)) ? "text/csv" : "text/plain";
}

/** Leading bytes that decide whether a file is accepted at all. */
export const HEAD = 4096;

/** Magic numbers of archives, which Office files are, and of Microsoft's older formats. */
const containers = ["PK\x03\x04", "\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1"];

/** Whether a file with these leading bytes can be of one of the types; verified when it is complete. */
export function canBegin(head: Buffer, types: readonly string[]): boolean {
  const found = binaryType(head);
  if (found !== undefined) return types.includes(found);
  if (containers.some((magic) => startsWith(head, magic)))
    return types.some((type) => /^application\/(vnd|msword)/.test(type));
  if (!types.includes("text/plain")) return false;
  // UTF-16, which is refused with the invalid line.
  if (startsWith(head, "\xff\xfe") || startsWith(head, "\xfe\xff")) return true;
  const text = head.toString("latin1").replace(/^\xef\xbb\xbf/, "");
  // A text in another encoding is refused with the invalid line once it is complete.
  return !controls.test(text) && !text.trimStart().startsWith("<");
}

/** The type of the file at `path`; undefined if it is not supported. */
export async function contentType(path: string, size: number): Promise<string | undefined> {
  const file = await open(path);
  try {
    const head = await read(file, 0, HEAD);
    const tail = size > 131_072 ? await read(file, size - 131_072, 131_072) : await read(file, 0, size);
    const found =
      binaryType(head) ?? (await officeType(head, tail, (position, length) => read(file, position, length)));
    if (found !== undefined) return found;
  } finally {
    await file.close();
  }
  return textType(path);
}

/** The first line that is not UTF-8, counted from 1; undefined if all are. */
export async function invalidUtf8Line(path: string): Promise<number | undefined> {
  let line = 1;
  let begun: Buffer[] = [];
  for await (const chunk of createReadStream(path) as AsyncIterable<Buffer>) {
    let from = 0;
    for (let to = chunk.indexOf(10); to !== -1; to = chunk.indexOf(10, from)) {
      if (!isUtf8(Buffer.concat([...begun, chunk.subarray(from, to)]))) return line;
      begun = [];
      line += 1;
      from = to + 1;
    }
    begun.push(chunk.subarray(from));
  }
  return isUtf8(Buffer.concat(begun)) ? undefined : line;
}
