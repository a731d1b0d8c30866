import type { ServerResponse } from "node:http";
import type { CodedError } from "../base/errors.ts";

/** Repeats `retryAfterSeconds` of an error as a header, also where the answer itself has status 200. */
export function retryAfter(response: ServerResponse, error: CodedError): void {
  const seconds = Number(error.extensions.retryAfterSeconds);
  if (
    (error.code === "RATE_LIMITED" || error.code === "UNAVAILABLE") &&
    seconds >= 0 &&
    !response.headersSent
  )
    response.setHeader("Retry-After", String(Math.ceil(seconds)));
}
