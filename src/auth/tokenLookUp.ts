/** Looks up tokens in the database, and caches them for a minute. */
import type { Pool } from "pg";
import { partyOf } from "../admission/party.ts";
import { authentications } from "../admission/semaphores.ts";
import { CodedError, internalError } from "../base/errors.ts";
import type { Claims } from "../database/claims.ts";
import { accessSettings } from "../database/handedAccess.ts";
import { DatabaseConnectionError, LOCK_NOT_AVAILABLE } from "../database/databaseErrors.ts";
import { fromSqlError, isSqlError } from "../database/sqlErrors.ts";
import type { Access, TokenFacts } from "../database/tokenCheck.ts";
import { accessTokenPrefix, accessTokenSha256, isAccessToken } from "./accessToken.ts";
import { KnownTokens, type KnownToken } from "./knownTokens.ts";
import { createLoginTokens, type LoginTokenKey } from "./loginToken.ts";

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
/** For tokens of agents. */
const byAgentToken = {
  name: "authenticate_agent_token",
  text: "select * from app_private.authenticate_access_token($1, 'MCP')",
};
/** Whether a token is valid for an audience. Unlike the others, it does not record the use of the token. */
const ofAudience = {
  name: "is_access_token_of",
  text: "select app_private.is_access_token_of($1, $2) as is_of",
};
const accessOf = {
  name: "access_of",
  text: "select access, classes, parties, version from app_private.access_of($1, $2, $3)",
};

/** Row of app_private.access_of. */
interface AccessRow {
  access: string | null;
  classes: string[] | null;
  parties: string[];
  version: string;
}

/** Settings for app_hidden.handed_access; null if the access is too large for that. */
function toAccess({ access, classes, parties, version }: AccessRow): Access | null {
  if (access === null) return null;
  return { settings: accessSettings(access, classes ?? []), parties, version };
}

/** The claims of a token, and the key to look it up again without its text. */
export interface Bearer {
  readonly claims: Claims;
  readonly facts: TokenFacts;
  /** Expiry in seconds since 1970; undefined if only the database knows. */
  readonly expiresAt: number | undefined;
}

/** The claims of a token. */
const claimsOf = (row: AuthenticatedRow, sessionId: string | undefined, isAgent: boolean): Claims => ({
  userId: row.viewer_id,
  readOnly: row.read_only,
  ...(sessionId !== undefined && { sessionId }),
  ...(row.token_id !== null && { tokenId: row.token_id }),
  ...(row.organization_id !== null && { organizationId: row.organization_id }),
  ...(row.scopes !== null && { scopes: row.scopes }),
  ...(row.second_factor_withholds && { secondFactorWithholds: row.second_factor_withholds }),
  ...(isAgent && { isAgent: true }),
});

export interface TokenLookUpOptions {
  /** Connections of plat_authenticator. */
  pool: Pick<Pool, "query">;
  /** Keys of login tokens; the first one signs. */
  keys: readonly LoginTokenKey[];
  /** Where its tokens are accepted. Default: the API, which also accepts login tokens. */
  audience?: "API" | "MCP";
}

/**
 * The tokens of one audience. Its methods throw CodedError UNAUTHENTICATED for an invalid token, UNAVAILABLE or
 * INTERNAL if the lookup fails.
 */
export class TokenLookUp {
  /** By the hash of their text. */
  readonly known = new KnownTokens();
  readonly #pool: Pick<Pool, "query">;
  readonly #ofAgents: boolean;
  readonly #loginTokens: ReturnType<typeof createLoginTokens>;

  constructor({ pool, keys, audience = "API" }: TokenLookUpOptions) {
    this.#pool = pool;
    this.#ofAgents = audience === "MCP";
    this.#loginTokens = createLoginTokens(keys);
  }

  async #bearer(
    ip: string | undefined,
    query: typeof bySession,
    values: unknown[],
    key: string,
    { sessionId, expiresAt }: { sessionId?: string | undefined; expiresAt?: number | undefined } = {},
  ): Promise<Bearer> {
    const { rows } = await authentications
      .run(partyOf(null, ip), () => this.#pool.query<AuthenticatedRow>({ ...query, values }))
      .catch(lookUpFailed);
    const [row] = rows;
    if (!row) {
      this.known.forget(key);
      if (query !== bySession) await this.#refuseOtherAudience(ip, values);
      throw refusal("The token is unknown, expired or revoked; sign in again.");
    }
    const claims = claimsOf(row, sessionId, this.#ofAgents);
    const tokenSha256 = row.token_id === null ? null : (values[0] as Buffer);
    const facts = { userId: row.viewer_id, sessionId: sessionId ?? null, tokenSha256 };
    // A session without a row cannot be checked, and withheld access may end at any time.
    const isCheckable = (sessionId ?? tokenSha256) !== null && !row.second_factor_withholds;
    if (isCheckable) this.known.keep(key, { claims, facts, expiresAt });
    else this.known.forget(key);
    return { claims, facts, expiresAt };
  }

  get #byAccessToken() {
    return this.#ofAgents ? byAgentToken : byAccessToken;
  }

  /** A token that is valid for another audience is not refused as expired: the message says where it is accepted. */
  async #refuseOtherAudience(ip: string | undefined, values: unknown[]): Promise<void> {
    const other = this.#ofAgents ? "API" : "MCP";
    const { rows } = await authentications
      .run(partyOf(null, ip), () =>
        this.#pool.query<{ is_of: boolean }>({ ...ofAudience, values: [values[0], other] }),
      )
      .catch(lookUpFailed);
    if (!rows[0]?.is_of) return;
    throw refusal(
      this.#ofAgents
        ? "Agents require an access token for MCP: createAccessToken with audience: MCP."
        : "This access token is for agents and only accepted at /mcp; create one with audience: API.",
    );
  }

  /** Looks up the access of a token that is used again, in the background. */
  findAccess(key: string, known: KnownToken): void {
    const { userId, organizationId, scopes } = known.claims;
    this.known.keepAccess(key, known, null);
    authentications
      .run(partyOf(userId, undefined), () =>
        this.#pool.query<AccessRow>({
          ...accessOf,
          values: [userId, organizationId ?? null, scopes ?? null],
        }),
      )
      .then(({ rows }) => this.known.keepAccess(key, known, toAccess(rows[0]!)))
      // Without it, each statement determines the access by itself.
      .catch(() => this.known.keepAccess(key, known, undefined));
  }

  /** @param key cache key of the token */
  async find(token: string, key: string, ip: string | undefined): Promise<Bearer> {
    if (this.#ofAgents && !token.startsWith(accessTokenPrefix))
      throw refusal("Agents require an access token for MCP: createAccessToken with audience: MCP.");
    if (!token.startsWith(accessTokenPrefix)) {
      const { sub, epoch, sid, jti, exp } = this.#loginTokens.verify(token);
      const sessionId = sid ?? jti;
      const values = [sub, epoch, sessionId ?? null, sid !== undefined, ip ?? null, exp];
      return this.#bearer(ip, bySession, values, key, { sessionId, expiresAt: exp });
    }
    if (!isAccessToken(token)) throw refusal("This access token is misspelled or incomplete.");
    return this.#bearer(ip, this.#byAccessToken, [accessTokenSha256(token)], key);
  }

  /** Looks up a token again. */
  async findAgain({ userId, sessionId, tokenSha256 }: TokenFacts, ip?: string): Promise<Claims> {
    // Its cache key is not one of a header, so cached tokens are unaffected.
    const found = tokenSha256
      ? await this.#bearer(ip, this.#byAccessToken, [tokenSha256], "")
      : await this.#bearer(ip, bySession, [userId, 0, sessionId, true, ip ?? null, null], "", {
          sessionId: sessionId ?? undefined,
        });
    this.known.forget("");
    return found.claims;
  }
}

/** Maps a failed lookup to an error of the service: UNAVAILABLE if the database is unreachable or too slow. */
function lookUpFailed(error: unknown): never {
  if (error instanceof CodedError) throw error;
  // The driver's own errors, of a connection that was lost or could not be opened, have no code.
  const known = isSqlError(error) ? error : new DatabaseConnectionError("08006", error);
  const coded = fromSqlError(known, new Map(), { signedIn: true });
  if (coded.code === "UNAVAILABLE") throw coded;
  // It took too long, for example because the server is stalled; treated like a server that does not answer.
  if (["57014", LOCK_NOT_AVAILABLE].includes(known.code))
    throw fromSqlError(new DatabaseConnectionError("08006", error), new Map(), { signedIn: true });
  throw internalError(error);
}

/** Error for a token that is invalid, expired or revoked. */
export function refusal(message: string): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}
