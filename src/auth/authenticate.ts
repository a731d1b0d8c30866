import { createHash } from "node:crypto";
import { anonymous, type Claims } from "../database/claims.ts";
import { TokenCheck, type TokenFacts } from "../database/tokenCheck.ts";
import { refusal, TokenLookUp, type Bearer, type TokenLookUpOptions } from "./tokenLookUp.ts";

export type { Bearer } from "./tokenLookUp.ts";

/** Longer than any token of ours. */
const MOST_CHARACTERS = 2000;

/** Who asks, and for a token that was looked up a moment ago the check that goes along with the statements of a query. */
export interface Authenticated {
  readonly claims: Claims;
  /** What the token is looked up by; undefined for a visitor. */
  readonly facts?: TokenFacts;
  readonly check?: TokenCheck;
}

/** See {@link createAuthenticator}. */
export interface Authenticator {
  (authorizationHeader: string | undefined, ip?: string, carries?: boolean): Promise<Authenticated>;
  /** Looks the token of a header up, for what goes on for longer than a request; undefined without a header. */
  bearer(authorizationHeader: string | undefined, ip: string | undefined): Promise<Bearer | undefined>;
  /** Looks a token up that was looked up before. */
  again(facts: TokenFacts, ip?: string): Promise<Claims>;
}

/**
 * Turns `Authorization` headers into claims. A header is refused or trusted, never ignored: only its absence makes an
 * anonymous viewer. One statement for a token that can be ours, none for any other; none either for one that was looked up in
 * this minute, where the caller carries the check.
 * @returns a function that throws CodedError UNAUTHENTICATED for a bad token, UNAVAILABLE or INTERNAL when the look-up fails; `ip` says who
 * waits with whom when there are many at once; `carries` says that the caller sees to the check that it may get
 */
export function createAuthenticator(options: TokenLookUpOptions): Authenticator {
  const tokens = new TokenLookUp(options);
  const { known: knownTokens } = tokens;

  /** The token of a header, and what it is known by. */
  function tokenOf(authorizationHeader: string): { token: string; key: string } {
    const token = /^Bearer +(\S+)$/i.exec(authorizationHeader)?.[1];
    if (token === undefined)
      throw refusal("The Authorization header must be: Bearer, a space, and the token.");
    if (token.length > MOST_CHARACTERS) throw refusal("Not a token of this service.");
    return { token, key: createHash("sha256").update(token).digest("base64") };
  }

  const authenticate = async (
    authorizationHeader: string | undefined,
    ip?: string,
    carries = false,
  ): Promise<Authenticated> => {
    if (authorizationHeader === undefined) return { claims: anonymous };
    const { token, key } = tokenOf(authorizationHeader);
    const known = carries ? knownTokens.find(key) : undefined;
    if (!known) {
      const { claims, facts } = await tokens.find(token, key, ip);
      return { claims, facts };
    }
    if (known.access === undefined) tokens.findAccess(key, known);
    const renew = async (refused: boolean) => {
      // A look-up that goes ahead, as it does of each mutation, says nothing of the access: that has versions.
      if (refused) knownTokens.forget(key);
      return (await tokens.find(token, key, ip)).claims;
    };
    const { facts } = known;
    return {
      claims: known.claims,
      facts,
      check: new TokenCheck(known.facts, known.access ?? undefined, renew),
    };
  };
  return Object.assign(authenticate, {
    async bearer(authorizationHeader: string | undefined, ip: string | undefined) {
      if (authorizationHeader === undefined) return undefined;
      const { token, key } = tokenOf(authorizationHeader);
      return tokens.find(token, key, ip);
    },
    again: (facts: TokenFacts, ip?: string) => tokens.findAgain(facts, ip),
  });
}
