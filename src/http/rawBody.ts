import express, { type RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { admitBody } from "./body.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** Maximum bytes; events of providers are far smaller. */
const limit = 256 * 1024;

const read = express.raw({ limit, type: () => true, inflate: false });

/** Reads the raw body, for signatures over it: `request.body` is a Buffer from here on. */
export const rawBody: RequestHandler<DatabaseValue> = async (request, response, next) => {
  // The sender is not authenticated yet.
  await admitBody(request, response, { userId: null, limit });
  read(request, response, (error?: { type?: string }) => {
    if (!error) {
      if (!Buffer.isBuffer(request.body)) request.body = Buffer.alloc(0);
      return next();
    }
    if (error.type === "entity.too.large")
      return next(new CodedError("PAYLOAD_TOO_LARGE", "The body exceeds 256 KB.", { limit }));
    next(new CodedError("BAD_USER_INPUT", "The request body could not be read completely."));
  });
};
