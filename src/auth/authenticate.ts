import { hash } from "node:crypto";
import { anonymous, type Claims } from "../database/claims.ts";
import { TokenCheck, type TokenFacts } from "../database/tokenCheck.ts";
import { refusal, TokenLookUp, type Bearer, type TokenLookUpOptions } from "./tokenLookUp.ts";

export type { Bearer } from "./tokenLookUp.ts";

/** Longer than any of our tokens. */
const MOST_CHARACTERS = 2000;

/** The viewer and, for a recently looked-up token, the check that is sent along with the statements of a query. */
export interface Authenticated {
  readonly claims: Claims;
  /** Key to look the token up; undefined for a visitor. */
  readonly facts?: TokenFacts;
  readonly check?: TokenCheck;
}

/** See {@link createAuthenticator}. */
export interface Authenticator {
  (authorizationHeader: string | undefined, ip?: string, carries?: boolean): Promise<Authenticated>;
  /** The viewer, if the token was looked up within the last minute, or there is none; the caller carries the check. */
  known(
    authorizationHeader: string | undefined,
    ip: string | undefined,
    connection: object,
  ): Authenticated | undefined;
  /** Looks up the token of a header, for anything that outlives a request; undefined without a header. */
  bearer(authorizationHeader: string | undefined, ip: string | undefined): Promise<Bearer | undefined>;
  /** Looks up a token again. */
  again(facts: TokenFacts, ip?: string): Promise<Claims>;
}

/**
 * Turns `Authorization` headers into claims. A header is refused or trusted, never ignored: only its absence makes a
 * visitor. One statement for a well-formed token, none for any other; none for a token that was looked up within the
 * last minute, if the caller carries the check.
 * @returns a function that throws CodedError UNAUTHENTICATED for an invalid token, UNAVAILABLE or INTERNAL if the
 * lookup fails; `ip` determines the queue under load; `carries` says that the caller handles the check that it may
 * get
 */
export function createAuthenticator(options: TokenLookUpOptions): Authenticator {
  const tokens = new TokenLookUp(options);
  const { known: knownTokens } = tokens;

  /** The token of a header, and its cache key. */
  function tokenOf(authorizationHeader: string): { token: string; key: string } {
    const token = /^Bearer +(\S+)$/i.exec(authorizationHeader)?.[1];
    if (token === undefined) throw refusal("The Authorization header must have the form: Bearer <token>.");
    if (token.length > MOST_CHARACTERS) throw refusal("Not a token of this service.");
    return { token, key: hash("sha256", token, "base64") };
  }

  /** PERF: of connections, whose requests mostly have the same token. */
  const lastTokens = new WeakMap<object, { header: string; token: string; key: string }>();
  const visitor: Authenticated = { claims: anonymous };

  function knownBy(token: string, key: string, ip: string | undefined): Authenticated | undefined {
    const known = knownTokens.find(key);
    if (!known) return undefined;
    if (known.access === undefined) tokens.findAccess(key, known);
    const renew = async (refused: boolean) => {
      // A lookup in advance, as for each mutation, does not include the access, which has versions.
      if (refused) knownTokens.forget(key);
      return (await tokens.find(token, key, ip)).claims;
    };
    const { facts } = known;
    return {
      claims: known.claims,
      facts,
      check: new TokenCheck(known.facts, known.access ?? undefined, renew),
    };
  }

  const authenticate = async (
    authorizationHeader: string | undefined,
    ip?: string,
    carries = false,
  ): Promise<Authenticated> => {
    if (authorizationHeader === undefined) return visitor;
    const { token, key } = tokenOf(authorizationHeader);
    const known = carries ? knownBy(token, key, ip) : undefined;
    if (known) return known;
    const { claims, facts } = await tokens.find(token, key, ip);
    return { claims, facts };
  };
  return Object.assign(authenticate, {
    known(authorizationHeader: string | undefined, ip: string | undefined, connection: object) {
      if (authorizationHeader === undefined) return visitor;
      let last = lastTokens.get(connection);
      if (last?.header !== authorizationHeader)
        lastTokens.set(connection, (last = { header: authorizationHeader, ...tokenOf(authorizationHeader) }));
      return knownBy(last.token, last.key, ip);
    },
    async bearer(authorizationHeader: string | undefined, ip: string | undefined) {
      if (authorizationHeader === undefined) return undefined;
      const { token, key } = tokenOf(authorizationHeader);
      return tokens.find(token, key, ip);
    },
    again: (facts: TokenFacts, ip?: string) => tokens.findAgain(facts, ip),
  });
}
