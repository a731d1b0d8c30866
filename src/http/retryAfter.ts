import type { ServerResponse } from "node:http";
import type { CodedError } from "../base/errors.ts";

/** Copies `retryAfterSeconds` of an error to a header, even if the response has status 200. */
export function retryAfter(response: ServerResponse, error: CodedError): void {
  const seconds = Number(error.extensions.retryAfterSeconds);
  if (
    (error.code === "RATE_LIMITED" || error.code === "UNAVAILABLE") &&
    seconds >= 0 &&
    !response.headersSent
  )
    response.setHeader("Retry-After", String(Math.ceil(seconds)));
}
