import { createSecretKey, hash, randomUUID } from "node:crypto";
import jwt from "jsonwebtoken";
import { CodedError } from "../base/errors.ts";

/** A key for login tokens. Retiring it invalidates every token that it signed. */
export interface LoginTokenKey {
  readonly kid: string;
  readonly secret: string;
}

/** Claims of a login token, from the database; times in seconds since 1970. */
export interface LoginTokenClaims {
  readonly sub: string;
  /** The user's session epoch at that time; incremented by a change of password. */
  readonly epoch: number;
  readonly iat: number;
  readonly exp: number;
  /** Its session; undefined for a token issued before sessions had rows. */
  readonly sid?: string;
  /** A UUID per token, generated when it is signed. */
  readonly jti?: string;
}

export interface LoginTokens {
  sign(claims: LoginTokenClaims): string;
  /** @throws {CodedError} UNAUTHENTICATED for a token that is not ours, was tampered with, or has expired */
  verify(token: string): LoginTokenClaims;
}

/** Number of verified tokens that are cached, by hash. */
const MOST_VERIFIED = 10_000;

/** The only algorithm, whatever the header of a token says. */
const algorithm = "HS256";
const issuer = "plat";
const audience = "plat";
const uuid = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/;

/**
 * Signs and verifies login tokens (JWT).
 * @param keys the first one signs, all of them verify
 */
export function createLoginTokens(keys: readonly LoginTokenKey[]): LoginTokens {
  const known = new Map(keys.map(({ kid, secret }) => [kid, createSecretKey(secret, "utf8")]));
  const [signer] = keys;
  if (!signer) throw new Error("Login tokens take at least one key.");
  const signingKey = known.get(signer.kid)!;
  /**
   * PERF: the validity of a signature does not change, and verifying it takes ten times as long as this hash. Whether
   * the token was revoked is checked in the database each time.
   */
  const verified = new Map<string, LoginTokenClaims>();

  function verify(token: string): LoginTokenClaims {
    try {
      const kid = jwt.decode(token, { complete: true })?.header.kid;
      const key = kid === undefined ? undefined : known.get(kid);
      if (!key) throw refusal();
      return checked(jwt.verify(token, key, { algorithms: [algorithm], issuer, audience }));
    } catch (error) {
      if (error instanceof CodedError) throw error;
      if (error instanceof jwt.TokenExpiredError) throw refusal("The token has expired; sign in again.");
      // Anything else, including a SyntaxError of the payload, is the client's fault.
      throw refusal();
    }
  }

  return {
    sign: ({ sub, epoch, iat, exp, sid }) =>
      jwt.sign({ sub, epoch, iat, exp, ...(sid !== undefined && { sid }) }, signingKey, {
        algorithm,
        keyid: signer.kid,
        issuer,
        audience,
        jwtid: randomUUID(),
      }),

    verify(token) {
      const digest = hash("sha256", token, "base64");
      const before = verified.get(digest);
      if (before !== undefined) {
        if (before.exp <= Math.floor(Date.now() / 1000)) verified.delete(digest);
        else return before;
      }
      const claims = verify(token);
      if (verified.size >= MOST_VERIFIED) verified.delete(verified.keys().next().value!);
      verified.set(digest, claims);
      return claims;
    },
  };
}

function checked(payload: string | jwt.JwtPayload): LoginTokenClaims {
  if (typeof payload === "string") throw refusal();
  const { sub, epoch, iat, exp, sid, jti } = payload;
  if (!sub || !uuid.test(sub) || !isNumber(epoch) || !isNumber(iat) || !isNumber(exp)) throw refusal();
  if (jti !== undefined && !uuid.test(jti)) throw refusal();
  if (sid !== undefined && !(typeof sid === "string" && uuid.test(sid))) throw refusal();
  return { sub, epoch, iat, exp, ...(sid !== undefined && { sid }), ...(jti !== undefined && { jti }) };
}

/** PostgreSQL's int is the narrowest of the three. */
function isNumber(value: unknown): value is number {
  return Number.isSafeInteger(value) && (value as number) >= 0;
}

function refusal(message = "The token is unknown; sign in again."): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}
