import type { IncomingMessage } from "node:http";
import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { partyOf } from "../admission/party.ts";
import { scheduledBySize } from "./largeBodies.ts";
import { parseJson, pathOfNul } from "./jsonText.ts";
import { requestState, type RequestState } from "./requestState.ts";
import { noTrustedDocuments, type TrustedDocuments } from "./trustedDocuments.ts";

/** A GraphQL request with its document. */
export interface GraphQLRequest {
  query: string;
  variables?: Record<string, unknown> | null;
  operationName?: string | null;
  extensions?: Record<string, unknown> | null;
}

/** A GraphQL request after validation of its form: with a document, or the id of a registered one. */
export interface AskedRequest extends Omit<GraphQLRequest, "query"> {
  query?: string;
  documentId?: string;
}

const refuse = (message: string, field?: string) =>
  new CodedError("BAD_USER_INPUT", message, field === undefined ? {} : { field });

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

/** PostgreSQL's text type does not support NUL characters. */
function refuseNul(value: unknown, member: string): void {
  const path = pathOfNul(value, member);
  if (path !== undefined) throw refuse("Text must not contain NUL characters.", path);
}

/** @throws CodedError BAD_USER_INPUT or LIMIT_EXCEEDED that describes the error in the body */
export function parseGraphQLRequest(bytes: Uint8Array): AskedRequest {
  const { value: body, mayHoldNul } = parseJson(bytes, "The body");
  if (Array.isArray(body))
    throw refuse("Send one operation per request; arrays of operations are not accepted.");
  if (!isObject(body)) throw refuse("The body must be a JSON object with the field query.");
  const { query, documentId, variables, operationName, extensions } = body;
  if (documentId != null && typeof documentId !== "string")
    throw refuse("documentId must be a string.", "documentId");
  if (documentId != null && query != null)
    throw refuse("Send either query or documentId, not both.", "documentId");
  if (documentId == null && typeof query !== "string")
    throw refuse("query must be a string, the GraphQL document.", "query");
  if (variables != null && !isObject(variables)) throw refuse("variables must be an object.", "variables");
  if (operationName != null && typeof operationName !== "string")
    throw refuse("operationName must be a string.", "operationName");
  if (extensions != null && !isObject(extensions))
    throw refuse("extensions must be an object.", "extensions");
  if (mayHoldNul)
    for (const [member, value] of Object.entries({ query, operationName, variables, extensions }))
      refuseNul(value, member);
  const received = documentId == null ? { query: query as string } : { documentId };
  return { ...received, variables, operationName, extensions };
}

/** Whether a body is a request that {@link setBody} has set. */
const isValidated = (body: unknown): body is GraphQLRequest =>
  !Buffer.isBuffer(body) && typeof (body as Partial<GraphQLRequest> | undefined)?.query === "string";

/** Sets the body of a request, and what is known by it. */
export function setBody(
  request: IncomingMessage & { body?: unknown },
  state: RequestState,
  body: GraphQLRequest,
  isRegistered: boolean,
): void {
  state.isRegistered = isRegistered;
  state.operationName = body.operationName?.slice(0, 128);
  request.body = body;
}

/**
 * Replaces the raw body by the validated request with its document; other members of the body are dropped. A request
 * that has been validated already passes.
 */
export const graphqlRequest =
  (documents: TrustedDocuments = noTrustedDocuments): RequestHandler =>
  async (request, _response, next) => {
    if (isValidated(request.body)) return next();
    const bytes = Buffer.isBuffer(request.body) ? request.body : Buffer.alloc(0);
    const state = requestState(request);
    const party = partyOf(state.claims?.userId ?? null, request.ip);
    state.bodyBytes = bytes.length;
    const received = await scheduledBySize(party, bytes.length, () => parseGraphQLRequest(bytes));
    const body = await documents.resolve(received, party);
    setBody(request, state, body, received.documentId !== undefined);
    next();
  };
