import type { Request, RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { type Claims, requestState } from "./requestState.ts";

/**
 * Turns the `Authorization` header into claims; called with undefined if there is none. Refuses a token by throwing a
 * CodedError with UNAUTHENTICATED; any other error is internal.
 */
export type Authenticate = (authorization: string | undefined, request: Request) => Promise<Claims>;

const bearer = /^Bearer +[A-Za-z0-9._~+/-]+=*$/i;

function refuse(message: string): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}

/** Sets the claims of the request. An invalid token is refused with 401, never treated as absent. */
export function authentication(authenticate: Authenticate, production: boolean): RequestHandler {
  return async (request, _response, next) => {
    const given = request.headersDistinct.authorization ?? [];
    if (given.length > 1) throw refuse("Send only one Authorization header.");
    const [header] = given;
    if (header !== undefined && !bearer.test(header.trim()))
      throw refuse("The Authorization header must have the form: Bearer <token>.");
    const state = requestState(request);
    state.claims = await authenticate(header?.trim(), request);
    state.schemaIsOpen = !production || state.claims.userId !== null;
    next();
  };
}
