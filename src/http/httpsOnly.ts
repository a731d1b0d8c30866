import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";

/**
 * Refuses what did not come over TLS. `request.secure` is true for a TLS socket, and behind a proxy that express'
 * `trust proxy` setting names, for `X-Forwarded-Proto: https`; the header of anybody else counts for nothing.
 */
export const httpsOnly: RequestHandler = (request, response, next) => {
  if (request.secure) return next();
  response.setHeader("Connection", "close");
  next(
    new CodedError(
      "FORBIDDEN",
      "Plain HTTP is not accepted. Send the request to the https:// address instead.",
    ),
  );
};
