import type { RequestHandler } from "express";
import { CodedError } from "../errors.ts";
import { requestState } from "./requestState.ts";

/** A GraphQL request after its form has been checked. */
export interface GraphQLRequest {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
  extensions?: Record<string, unknown> | null;
}

const MAX_VALUE_DEPTH = 64;
const utf8 = new TextDecoder("utf-8", { fatal: true });

const refuse = (message: string, field?: string) =>
  new CodedError("BAD_USER_INPUT", message, field === undefined ? {} : { field });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/**
 * Refuses values that later steps cannot hold: a NUL character, which PostgreSQL's text has no place for, and nesting
 * that would exhaust the stack of whoever walks it recursively.
 */
function checkValues(root: Record<string, unknown>, member: string): void {
  const waiting: { value: unknown; path: string; depth: number }[] = [
    { value: root, path: member, depth: 0 },
  ];
  for (let next = waiting.pop(); next; next = waiting.pop()) {
    const { value, path, depth } = next;
    if (typeof value === "string" && value.includes("\0"))
      throw refuse("Text must not contain NUL characters.", path);
    if (typeof value !== "object" || value === null) continue;
    if (depth >= MAX_VALUE_DEPTH)
      throw refuse(`Values may be nested ${MAX_VALUE_DEPTH} levels deep at most.`, member);
    for (const [key, child] of Object.entries(value)) {
      if (key.includes("\0")) throw refuse("Text must not contain NUL characters.", path);
      waiting.push({ value: child, path: `${path}.${key}`, depth: depth + 1 });
    }
  }
}

/** @throws CodedError BAD_USER_INPUT that says what is wrong with the body */
export function parseGraphQLRequest(bytes: Uint8Array): GraphQLRequest {
  let body: unknown;
  try {
    body = JSON.parse(utf8.decode(bytes));
  } catch {
    throw refuse("The body is not valid JSON in UTF-8.");
  }
  if (Array.isArray(body))
    throw refuse("Send one operation per request; arrays of operations are not accepted.");
  if (!isObject(body)) throw refuse("The body has to be a JSON object with a member named query.");
  const { query, variables, operationName, extensions } = body;
  if (typeof query !== "string")
    throw refuse("The member query has to be a string, the GraphQL document.", "query");
  if (query.includes("\0")) throw refuse("Text must not contain NUL characters.", "query");
  if (variables != null && !isObject(variables))
    throw refuse("The member variables has to be an object.", "variables");
  if (operationName != null && typeof operationName !== "string")
    throw refuse("The member operationName has to be a string.", "operationName");
  if (extensions != null && !isObject(extensions))
    throw refuse("The member extensions has to be an object.", "extensions");
  if (variables) checkValues(variables, "variables");
  if (extensions) checkValues(extensions, "extensions");
  return { query, variables, operationName, extensions };
}

/** Replaces the raw body by the checked request; other members of the body are dropped. */
export const graphqlRequest: RequestHandler = (request, _response, next) => {
  const body = parseGraphQLRequest(Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0));
  requestState(request).operationName = body.operationName?.slice(0, 128);
  request.body = body;
  next();
};
