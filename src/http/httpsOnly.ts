import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";

/**
 * Refuses requests without TLS. `request.secure` is true for a TLS socket, and for `X-Forwarded-Proto: https` from a
 * proxy that express' `trust proxy` setting names; the header is ignored from anybody else.
 */
export const httpsOnly: RequestHandler = (request, response, next) => {
  if (request.secure) return next();
  response.setHeader("Connection", "close");
  next(
    new CodedError("FORBIDDEN", "Plain HTTP is not accepted. Send the request to the https:// URL instead."),
  );
};
