/**
 * GET requests for queries in registered documents, so that browsers and proxies can cache the responses:
 * docs/caching.md.
 */
import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import { getOperationAST, parse } from "postgraphile/graphql";
import { CodedError } from "../base/errors.ts";
import { partyOf } from "../admission/party.ts";
import { type AskedRequest, parseGraphQLRequest, setBody } from "./graphqlRequest.ts";
import { requestState } from "./requestState.ts";
import { noTrustedDocuments, type TrustedDocuments } from "./trustedDocuments.ts";

/** Whether this is a GET request for a registered document. */
export const isGetOfDocument = (request: IncomingMessage & { originalUrl?: string }): boolean =>
  request.method === "GET" && /[?&]documentId=/.test(request.originalUrl ?? request.url!);

/**
 * Reads a request from the query parameters of its address.
 * @throws CodedError BAD_USER_INPUT or LIMIT_EXCEEDED
 */
export function requestOfUrl(url: string): AskedRequest {
  const members = new URLSearchParams(url.split("?", 2)[1] ?? "");
  const body: Record<string, unknown> = { documentId: members.get("documentId") };
  for (const name of ["variables", "extensions"]) {
    const text = members.get(name);
    if (text === null || text === "") continue;
    try {
      body[name] = JSON.parse(text);
    } catch {
      throw new CodedError("BAD_USER_INPUT", `The parameter ${name} must be JSON.`, { field: name });
    }
  }
  const operationName = members.get("operationName");
  if (operationName) body["operationName"] = operationName;
  return parseGraphQLRequest(Buffer.from(JSON.stringify(body)));
}

/** Documents with known operations. */
const MOST_DOCUMENTS = 1_000;

/** Reads the request from query parameters; only queries are allowed. */
export function getOfDocument(documents: TrustedDocuments = noTrustedDocuments): RequestHandler {
  const queries = new Map<string, boolean>();
  const isQuery = (text: string, operationName: string | null | undefined): boolean => {
    const key = `${operationName ?? ""} ${text}`;
    const known = queries.get(key);
    if (known !== undefined) return known;
    if (queries.size >= MOST_DOCUMENTS) queries.clear();
    const found = getOperationAST(parse(text), operationName);
    // Execution selects the operation.
    const result = !found || found.operation === "query";
    queries.set(key, result);
    return result;
  };
  return async (request, response, next) => {
    if (request.method !== "GET") return next();
    const state = requestState(request);
    const parsed = requestOfUrl(request.originalUrl);
    const found = await documents.resolve(parsed, partyOf(state.claims?.userId ?? null, request.ip));
    if (!isQuery(found.query, found.operationName)) {
      response.setHeader("Allow", "POST");
      throw new CodedError(
        "BAD_USER_INPUT",
        "Only queries can be sent by GET; use POST.",
        {},
        { status: 405 },
      );
    }
    setBody(request, state, found, true);
    // Subsequent code handles it like a POST request.
    request.headers["content-type"] = "application/json";
    next();
  };
}
