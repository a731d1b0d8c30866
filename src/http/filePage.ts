/** Serves file contents at signed URLs. Access was checked when the URL was signed. */
import { create as contentDisposition } from "content-disposition";
import type { Request, RequestHandler, Response } from "express";
import { pipeline } from "node:stream/promises";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import type { FileAddresses, OpenedAddress } from "../files/addresses.ts";
import { throwReadFailure } from "../files/files.ts";
import { typeOfName } from "../files/fileName.ts";
import type { ByteRange, FileStore } from "../providers/files/index.ts";
import { hasCurrent } from "./conditionalRequests.ts";
import { endTurn } from "./requestTurns.ts";
import { pageTurn } from "./inTurn.ts";

export interface FilePageDeps {
  store: FileStore;
  addresses: FileAddresses;
  /** Connections of plat_authenticator. */
  pool: Pool;
}

/** Seconds for which public files may be cached by anyone; a removed image disappears after that time. */
const publicAge = 3600;

/** Whether a visitor can see the record of this content now. */
async function isPublic(pool: Pool, { record = "", key }: OpenedAddress): Promise<boolean> {
  const [table, id] = record.split(".");
  const client = await pool.connect();
  try {
    await client.query("begin read only");
    await client.query("set local role plat_anonymous");
    const { rows } = await client.query<{ is_public: boolean }>(
      "select app_hidden.file_is_public($1, $2, $3) as is_public",
      [table, id, key.split(".")[0]],
    );
    return rows[0]!.is_public;
  } finally {
    await client.query("rollback").finally(() => client.release());
  }
}

/**
 * A single range. For several ranges, or another unit, the entire content is returned, as RFC 9110 permits. The
 * package range-parser refuses a suffix longer than the file, for which the entire content is returned.
 */
function parseRange(header: string | undefined, size: number): ByteRange | "unsatisfiable" | undefined {
  const match = /^bytes=(\d*)-(\d*)$/.exec(header ?? "");
  if (!match || (match[1] === "" && match[2] === "")) return undefined;
  const start = match[1] === "" ? Math.max(size - Number(match[2]), 0) : Number(match[1]);
  const end = match[1] === "" || match[2] === "" ? size - 1 : Math.min(Number(match[2]), size - 1);
  if (match[1] !== "" && match[2] !== "" && Number(match[1]) > Number(match[2])) return undefined;
  return start > end || start >= size ? "unsatisfiable" : { start, end };
}

const refused = () =>
  new CodedError("FORBIDDEN", "This URL is wrong or no longer valid; request a new one from the API.");

/**
 * @returns the value of Cache-Control; undefined if the client has disconnected
 * @throws CodedError FORBIDDEN for an invalid or expired URL, RATE_LIMITED
 */
async function cacheControl(
  { pool }: FilePageDeps,
  address: OpenedAddress,
  { ip }: Request,
  response: Response,
): Promise<string | undefined> {
  if (address.secondsLeft !== undefined && address.secondsLeft > 0)
    return `private, max-age=${address.secondsLeft}, immutable`;
  if (address.record === undefined) throw refused();
  const release = await pageTurn(ip, response);
  if (!release) return undefined;
  try {
    if (!(await isPublic(pool, address))) throw refused();
  } finally {
    release();
  }
  return `public, max-age=${publicAge}`;
}

/**
 * `GET /files/<key>/<name>?…`. A failure of the store is reported as PROVIDER_ERROR, 502; if the response has
 * started, the connection is closed.
 */
export function filePage(deps: FilePageDeps): RequestHandler {
  const { store, addresses } = deps;
  return async (request: Request, response) => {
    const url = new URL(request.originalUrl, "https://localhost");
    const address = addresses.open(url.pathname, url.searchParams);
    if (!address) throw refused();
    const caching = await cacheControl(deps, address, request, response);
    if (caching === undefined) return;
    const size = await store.size(address.key).catch(throwReadFailure);
    if (size === undefined) throw new CodedError("NOT_FOUND", "This file no longer exists.");

    const etag = `"${address.key}"`;
    const type = typeOfName(address.name);
    response.setHeader("Cache-Control", caching);
    response.setHeader("ETag", etag);
    response.setHeader("Accept-Ranges", "bytes");
    // Files share the origin of the API, so nothing in them may be executed by a browser.
    response.setHeader("Content-Security-Policy", "default-src 'none'; sandbox; frame-ancestors 'none'");
    // The URL is the credential, so pages of any origin may use it.
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("Cross-Origin-Resource-Policy", "cross-origin");
    if (hasCurrent(request, etag)) return void response.status(304).end();

    const ifRange = request.headers["if-range"];
    const range =
      ifRange === undefined || ifRange === etag ? parseRange(request.headers.range, size) : undefined;
    if (range === "unsatisfiable") {
      response.setHeader("Content-Range", `bytes */${size}`);
      throw new CodedError(
        "BAD_USER_INPUT",
        "The requested byte range is outside the file.",
        {},
        { status: 416 },
      );
    }
    response.setHeader("Content-Type", type.startsWith("text/") ? `${type}; charset=utf-8` : type);
    response.setHeader(
      "Content-Disposition",
      contentDisposition(address.name, {
        type: address.attachment ? "attachment" : "inline",
        fallback: address.name.replace(/[^\x20-\x7e]/g, "_"),
      }),
    );
    response.setHeader("Content-Length", range ? range.end - range.start + 1 : size);
    if (range) response.setHeader("Content-Range", `bytes ${range.start}-${range.end}/${size}`);
    response.status(range ? 206 : 200);
    if (request.method === "HEAD") return void response.end();
    const content = await store.get(address.key, range).catch(throwReadFailure);
    if (!content) throw new CodedError("NOT_FOUND", "This file no longer exists.");
    // A client that disconnects early is not an error.
    endTurn(response);
    await pipeline(content, response).catch((error: NodeJS.ErrnoException) => {
      if (error.code !== "ERR_STREAM_PREMATURE_CLOSE") throw error;
    });
  };
}
