import type { Pool } from "pg";
import { DatabaseConnectionError } from "../database/databaseErrors.ts";
import { fromSqlError, isSqlError } from "../database/sqlErrors.ts";
import { CodedError, internalError } from "../errors.ts";
import { authentications } from "../limits/admission.ts";
import { partyOf } from "../limits/party.ts";
import { accessTokenPrefix, accessTokenSha256, isAccessToken } from "./accessToken.ts";
import { anonymous, type Claims } from "./claims.ts";
import { createLoginTokens, type LoginTokenKey } from "./loginToken.ts";

/** Longer than any token of ours. */
const MOST_CHARACTERS = 2000;

/** Row of app_private.authenticate_session and app_private.authenticate_access_token. */
interface AuthenticatedRow {
  viewer_id: string;
  token_id: string | null;
  read_only: boolean;
  organization_id: string | null;
  scopes: string[] | null;
  second_factor_withholds: "SOME" | "ALL" | null;
}

const bySession = {
  name: "authenticate_session",
  text: "select * from app_private.authenticate_session($1, $2, $3, $4, $5, to_timestamp($6))",
};
const byAccessToken = {
  name: "authenticate_access_token",
  text: "select * from app_private.authenticate_access_token($1)",
};

/**
 * Turns `Authorization` headers into claims. A header is refused or trusted, never ignored: only its absence makes an
 * anonymous viewer. One statement for a token that can be ours, none for any other.
 * @param options.pool connections of plat_authenticator
 * @param options.keys those of login tokens; the first one signs
 * @returns a function that throws CodedError UNAUTHENTICATED for a bad token, UNAVAILABLE or INTERNAL when the look-up fails; `ip` says who
 * waits with whom when there are many at once
 */
export function createAuthenticator(options: {
  pool: Pick<Pool, "query">;
  keys: readonly LoginTokenKey[];
}): (authorizationHeader: string | undefined, ip?: string) => Promise<Claims> {
  const { pool } = options;
  const loginTokens = createLoginTokens(options.keys);

  async function find(
    ip: string | undefined,
    query: typeof bySession,
    values: unknown[],
    sessionId?: string,
  ): Promise<Claims> {
    const { rows } = await authentications
      .run(partyOf(null, ip), () => pool.query<AuthenticatedRow>({ ...query, values }))
      .catch(lookUpFailed);
    const [row] = rows;
    if (!row) throw refusal("The token has ended: it is unknown, expired or revoked. Sign in again.");
    return {
      userId: row.viewer_id,
      readOnly: row.read_only,
      ...(sessionId !== undefined && { sessionId }),
      ...(row.token_id !== null && { tokenId: row.token_id }),
      ...(row.organization_id !== null && { organizationId: row.organization_id }),
      ...(row.scopes !== null && { scopes: row.scopes }),
      ...(row.second_factor_withholds && { secondFactorWithholds: row.second_factor_withholds }),
    };
  }

  return async (authorizationHeader, ip) => {
    if (authorizationHeader === undefined) return anonymous;
    const token = /^Bearer +(\S+)$/i.exec(authorizationHeader)?.[1];
    if (token === undefined)
      throw refusal("The Authorization header has to be: Bearer, a space, and the token.");
    if (token.length > MOST_CHARACTERS) throw refusal("This is no token of ours.");
    if (!token.startsWith(accessTokenPrefix)) {
      const { sub, epoch, sid, jti, exp } = loginTokens.verify(token);
      const sessionId = sid ?? jti;
      const values = [sub, epoch, sessionId ?? null, sid !== undefined, ip ?? null, exp];
      return find(ip, bySession, values, sessionId);
    }
    if (!isAccessToken(token)) throw refusal("This access token is mistyped or incomplete.");
    return find(ip, byAccessToken, [accessTokenSha256(token)]);
  };
}

/** Whatever the database refuses here, the caller did nothing wrong: an error of ours, UNAVAILABLE where it cannot be reached. */
function lookUpFailed(error: unknown): never {
  if (error instanceof CodedError) throw error;
  // The driver's own errors, of a connection that is lost or cannot be made, have no code.
  const known = isSqlError(error) ? error : new DatabaseConnectionError("08006", error);
  const coded = fromSqlError(known, new Map(), true);
  throw coded.code === "UNAVAILABLE" ? coded : internalError(error, coded.status === 503 ? 503 : 500);
}

function refusal(message: string): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}
