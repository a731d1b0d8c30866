import type { IncomingMessage } from "node:http";
import type { Request, RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { type Claims, requestState, type RequestState } from "./requestState.ts";

/**
 * Turns the `Authorization` header into claims; called with undefined if there is none. Refuses a token by throwing a
 * CodedError with UNAUTHENTICATED; any other error is internal.
 */
export type Authenticate = (authorization: string | undefined, request: Request) => Promise<Claims>;

/**
 * The same for a token that this process knows, without waiting.
 * @returns undefined if it has to be looked up, or refused
 */
export type AuthenticateKnown = (
  authorization: string | undefined,
  request: IncomingMessage & { ip?: string | undefined },
) => Claims | undefined;

const bearer = /^Bearer +[A-Za-z0-9._~+/-]+=*$/i;

function refuse(message: string): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}

/**
 * The value of the Authorization header.
 * @throws CodedError UNAUTHENTICATED if it has another form than ours
 */
export function authorizationOf(request: IncomingMessage): string | undefined {
  // PERF: without the values of all headers in lists.
  if (request.headers.authorization === undefined) return undefined;
  let given: string | undefined;
  const { rawHeaders } = request;
  for (let at = 0; at < rawHeaders.length; at += 2) {
    const name = rawHeaders[at]!;
    if (name.length !== "authorization".length || name.toLowerCase() !== "authorization") continue;
    if (given !== undefined) throw refuse("Send only one Authorization header.");
    given = rawHeaders[at + 1]!.trim();
  }
  if (given !== undefined && !bearer.test(given))
    throw refuse("The Authorization header must have the form: Bearer <token>.");
  return given;
}

/** Notes who sent a request. */
export function setViewer(state: RequestState, claims: Claims, production: boolean): void {
  state.claims = claims;
  state.schemaIsOpen = !production || claims.userId !== null;
}

/** Sets the claims of the request. An invalid token is refused with 401, never treated as absent. */
export function authentication(authenticate: Authenticate, production: boolean): RequestHandler {
  return async (request, _response, next) => {
    const state = requestState(request);
    if (state.claims === undefined)
      setViewer(state, await authenticate(authorizationOf(request), request), production);
    next();
  };
}
