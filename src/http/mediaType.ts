import { parse, type ContentType } from "content-type";
import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";

/** Whether the parameters of a media type specify UTF-8, or no encoding. */
export const isUtf8 = ({ charset = "utf-8" }: ContentType["parameters"]): boolean =>
  /^utf-?8$/i.test(charset);

const refuse = (message: string) => new CodedError("BAD_USER_INPUT", message, {}, { status: 415 });

/** Accepts only JSON in UTF-8. Media types for uploads are handled in another branch. */
export const jsonOnly: RequestHandler = (request, _response, next) => {
  // PERF: what most clients send.
  if (request.headers["content-type"] === "application/json") return next();
  const { type, parameters } = parse(request.headers["content-type"] ?? "");
  if (type !== "application/json")
    return next(refuse("Send the operation as JSON, with the header Content-Type: application/json."));
  if (!isUtf8(parameters)) return next(refuse("The body must be encoded in UTF-8."));
  // The spelling that the GraphQL server recognizes.
  request.headers["content-type"] = "application/json";
  next();
};
