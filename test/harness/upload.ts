import { randomUUID } from "node:crypto";
import { deflateSync, crc32 } from "node:zlib";
import { request, type RequestOptions } from "node:https";
import sharp from "sharp";
import type { Answer, Api, Person } from "./api.ts";

export interface FilePart {
  bytes: Buffer;
  name?: string;
  /** The media type that the client states. */
  type?: string;
}

export interface UploadOptions {
  headers?: Record<string, string>;
  /** Number of bytes after which the connection is closed, although the full length was announced. */
  cutOffAfter?: number;
}

/** The body of a GraphQL multipart request: `files` by path, such as `variables.input.file`. */
export function multipartBody(...given: Parameters<typeof multipartPieces>): {
  body: Buffer;
  type: string;
} {
  const { type, pieces } = multipartPieces(...given);
  return { type, body: Buffer.concat(pieces) };
}

/** PERF: a FormData copies large files four times; this does not copy them. */
function multipartPieces(
  query: string,
  variables: Record<string, unknown>,
  files: Record<string, FilePart>,
): { pieces: Buffer[]; type: string } {
  const boundary = `boundary-${randomUUID()}`;
  const paths = Object.keys(files);
  const part = (name: string, more = "") =>
    `--${boundary}\r\ncontent-disposition: form-data; name="${name}"${more}\r\n\r\n`;
  const map = JSON.stringify(Object.fromEntries(paths.map((path, i) => [String(i), [path]])));
  const pieces: (string | Buffer)[] = [
    `${part("operations")}${JSON.stringify({ query, variables })}\r\n${part("map")}${map}\r\n`,
  ];
  for (const [i, path] of paths.entries()) {
    const { bytes, name = "file.bin", type = "application/octet-stream" } = files[path]!;
    // In the format of browsers.
    const shown = name.replaceAll("\n", "%0A").replaceAll("\r", "%0D").replaceAll('"', "%22");
    pieces.push(part(String(i), `; filename="${shown}"\r\ncontent-type: ${type}`), bytes, "\r\n");
  }
  pieces.push(`--${boundary}--\r\n`);
  return {
    type: `multipart/form-data; boundary=${boundary}`,
    pieces: pieces.map((piece) => (typeof piece === "string" ? Buffer.from(piece) : piece)),
  };
}

/** Sends raw bytes to the endpoint; an empty response means that the connection ended without one. */
export function sendRaw(
  api: Pick<Api, "url">,
  person: Person,
  { body, type }: { body: Buffer; type: string },
  { cutOffAfter, ...options }: UploadOptions = {},
): Promise<Answer> {
  if (cutOffAfter === undefined) return sendPieces(api, person, { pieces: [body], type }, options);
  const isCutOff = { pieces: [body.subarray(0, cutOffAfter)], type, announced: body.length };
  return sendPieces(api, person, isCutOff, options);
}

interface Pieces {
  pieces: readonly Buffer[];
  type: string;
  /** The announced length, if fewer bytes are sent before the connection is closed. */
  announced?: number;
}

function sendPieces(
  api: Pick<Api, "url">,
  person: Person,
  { pieces, type, announced }: Pieces,
  { headers = { "graphql-preflight": "1" } }: Pick<UploadOptions, "headers"> = {},
): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const options: RequestOptions = {
      method: "POST",
      rejectUnauthorized: false,
      headers: {
        ...headers,
        "content-type": type,
        "content-length": announced ?? pieces.reduce((sum, { length }) => sum + length, 0),
        ...(person.token ? { authorization: `Bearer ${person.token}` } : {}),
      },
    };
    const outgoing = request(api.url, options, (response) => {
      let text = "";
      response.setEncoding("utf8");
      response.on("data", (chunk) => (text += chunk));
      response.on("error", reject);
      response.on("end", () => {
        const { data, errors } = JSON.parse(text);
        resolve({ status: response.statusCode!, headers: response.headers, data, errors });
      });
    });
    outgoing.on("error", reject);
    for (const piece of pieces.slice(0, -1)) outgoing.write(piece);
    const last = pieces.at(-1)!;
    if (announced === undefined) outgoing.end(last);
    else outgoing.write(last, () => outgoing.destroy(new Error("cut off")));
  });
}

/** Uploads files with a mutation. */
export async function upload(
  api: Pick<Api, "url">,
  person: Person,
  query: string,
  variables: Record<string, unknown>,
  files: Record<string, FilePart>,
  options?: Pick<UploadOptions, "headers">,
): Promise<Answer> {
  return sendPieces(api, person, multipartPieces(query, variables, files), options);
}

/** A picture of one colour. */
export const picture = (
  format: "png" | "jpeg" | "webp" | "gif" | "avif" = "png",
  width = 60,
  height = 40,
): Promise<Buffer> =>
  sharp({ create: { width, height, channels: 3, background: { r: 200, g: 120, b: 40 } } })
    .toFormat(format)
    .toBuffer();

function pngChunk(type: string, data: Buffer): Buffer {
  const length = Buffer.alloc(4);
  length.writeUInt32BE(data.length);
  const content = Buffer.concat([Buffer.from(type, "latin1"), data]);
  const check = Buffer.alloc(4);
  check.writeUInt32BE(crc32(content));
  return Buffer.concat([length, content, check]);
}

/** A small PNG of `side` × `side` black and white pixels. */
export function pixelBomb(side: number): Buffer {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(side, 0);
  header.writeUInt32BE(side, 4);
  header[8] = 1;
  const rows = Buffer.alloc(Math.ceil(side / 8 + 1) * side);
  return Buffer.concat([
    Buffer.from("\x89PNG\r\n\x1a\n", "latin1"),
    pngChunk("IHDR", header),
    pngChunk("IDAT", deflateSync(rows, { level: 9 })),
    pngChunk("IEND", Buffer.alloc(0)),
  ]);
}

/** A PNG of the given size, with padding that decoders skip. */
export async function paddedPng(size: number): Promise<Buffer> {
  const png = await picture();
  const end = png.subarray(-12);
  const padding = Buffer.alloc(size - png.length - 12);
  return Buffer.concat([png.subarray(0, -12), pngChunk("pADd", padding), end]);
}
