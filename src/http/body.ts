/** Reads request bodies, with a limit for visitors and one for signed-in viewers. */
import express, { type Request, type RequestHandler, type Response } from "express";
import { CodedError } from "../base/errors.ts";
import { requestBodies, SMALL_BODY } from "../admission/semaphores.ts";
import { partyOf } from "../admission/party.ts";
import { paceLarge } from "./largeBodies.ts";
import { requestState } from "./requestState.ts";

/** Bytes after decompression, so that a small compressed body cannot expand without limit. */
export const bodyLimits = { anonymous: 1_000_000, signedIn: 10_000_000 } as const;

const readers = Object.fromEntries(
  Object.values(bodyLimits).map((limit) => [limit, express.raw({ limit, type: () => true })]),
) as unknown as Record<number, RequestHandler>;

/** The body was not received completely. */
export const incompleteBody = (cause?: unknown): CodedError =>
  new CodedError("BAD_USER_INPUT", "The request body could not be read completely.", {}, { cause });

/** Members of errors from express' body reader. */
interface ReadError {
  type?: string;
  status?: number;
}

function coded(error: ReadError, limit: number): CodedError {
  if (error.type === "entity.too.large") {
    const message = `The body is over ${limit / 1_000_000} MB.`;
    return new CodedError("PAYLOAD_TOO_LARGE", message, { limit });
  }
  if (error.type === "encoding.unsupported") {
    const message = "Content-Encoding may be gzip, deflate, br or zstd, or be omitted.";
    return new CodedError("BAD_USER_INPUT", message, {}, { status: 415 });
  }
  return incompleteBody(error);
}

/** Encodings that the body reader supports. */
const encodings = /^(gzip|deflate|br|zstd)$/i;

/**
 * Maximum number of body bytes: the announced length if it is reliable, 0 if the body is not read, otherwise the
 * limit.
 */
function mostBytes({ headers }: Request, limit: number): number {
  // In the format of the reader.
  const encoding = headers["content-encoding"] || "identity";
  const isPlain = /^identity$/i.test(encoding);
  if (!isPlain && !encodings.test(encoding)) return 0;
  const announced = isPlain ? headers["content-length"] : undefined;
  return announced === undefined ? limit : Math.min(Number(announced), limit);
}

/**
 * Waits until the memory limit for request bodies allows this one, which counts until the request is answered. A body
 * whose announced length is too large is refused by the reader and does not count.
 * @returns maximum number of its bytes
 * @throws CodedError RATE_LIMITED
 */
export async function admitBody(
  request: Request,
  response: Response,
  { userId, limit }: { userId: string | null; limit: number },
): Promise<number> {
  if (Number(request.headers["content-length"]) > limit) return 0;
  const bytes = mostBytes(request, limit);
  if (bytes <= SMALL_BODY) return bytes;
  const release = await requestBodies.acquire(partyOf(userId, request.ip), { weight: bytes });
  if (response.closed) release();
  else response.once("close", release);
  return bytes;
}

/**
 * Reads the body into a Buffer, up to the viewer's limit, unless it has been read. Runs after authentication, which
 * determines the limit.
 */
export const readBody: RequestHandler = async (request, response, next) => {
  if (request.body !== undefined) return next();
  const userId = requestState(request).claims?.userId ?? null;
  const limit = userId ? bodyLimits.signedIn : bodyLimits.anonymous;
  await paceLarge(await admitBody(request, response, { userId, limit }));
  readers[limit]!(request, response, (error?: unknown) =>
    next(error ? coded(error as ReadError, limit) : undefined),
  );
};
