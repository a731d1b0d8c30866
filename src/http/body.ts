import express, { type RequestHandler } from "express";
import { CodedError } from "../errors.ts";
import { requestState } from "./requestState.ts";

/** Bytes, counted after decompression, so that a small compressed body cannot become a large one. */
export const bodyLimits = { anonymous: 1_000_000, signedIn: 10_000_000 } as const;

const readers = Object.fromEntries(
  Object.values(bodyLimits).map((limit) => [limit, express.raw({ limit, type: () => true })]),
) as unknown as Record<number, RequestHandler>;

/** Members of the errors that express' body reader passes on. */
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
    const message = "Content-Encoding may be gzip, deflate, br or zstd, or be left out.";
    return new CodedError("BAD_USER_INPUT", message, {}, { status: 415 });
  }
  return new CodedError("BAD_USER_INPUT", "The body could not be read to its end.", {}, { cause: error });
}

/** Reads the body into a Buffer, as far as the viewer may send. Comes after authentication, which decides the limit. */
export const readBody: RequestHandler = (request, response, next) => {
  const limit = requestState(request).claims?.userId ? bodyLimits.signedIn : bodyLimits.anonymous;
  readers[limit]!(request, response, (error?: unknown) =>
    next(error ? coded(error as ReadError, limit) : undefined),
  );
};
