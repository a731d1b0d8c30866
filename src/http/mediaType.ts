import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";

const token = "[!#$%&'*+.^_`|~0-9A-Za-z-]+";
const mediaType = new RegExp(`^\\s*(${token}/${token})\\s*((?:;[^;]*)*)$`);
const parameter = new RegExp(`^\\s*(${token})\\s*=\\s*(?:"([^"]*)"|(${token}))\\s*$`);

/** The media type in lower case with its parameters, or undefined when the header does not have that form. */
export function parseMediaType(
  header: string,
): { type: string; parameters: Map<string, string> } | undefined {
  const match = mediaType.exec(header);
  if (!match) return undefined;
  const parameters = new Map<string, string>();
  for (const part of match[2]!.split(";")) {
    if (part.trim() === "") continue;
    const pair = parameter.exec(part);
    if (!pair) return undefined;
    parameters.set(pair[1]!.toLowerCase(), (pair[2] ?? pair[3])!.toLowerCase());
  }
  return { type: match[1]!.toLowerCase(), parameters };
}

const refuse = (message: string) => new CodedError("BAD_USER_INPUT", message, {}, { status: 415 });

/** Takes JSON in UTF-8 and nothing else. A request type for uploads becomes another branch here. */
export const jsonOnly: RequestHandler = (request, _response, next) => {
  // PERF: what most callers send.
  if (request.headers["content-type"] === "application/json") return next();
  const given = parseMediaType(request.headers["content-type"] ?? "");
  if (given?.type !== "application/json")
    return next(refuse("Send the operation as JSON, with the header Content-Type: application/json."));
  const charset = given.parameters.get("charset");
  if (charset !== undefined && charset !== "utf-8" && charset !== "utf8")
    return next(refuse("The body has to be in UTF-8."));
  // The one spelling that the GraphQL server knows.
  request.headers["content-type"] = "application/json";
  next();
};
