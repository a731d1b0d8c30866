import { createHash } from "node:crypto";
import type { Pool } from "pg";
import { DatabaseConnectionError, LOCK_NOT_AVAILABLE } from "../database/databaseErrors.ts";
import { fromSqlError, isSqlError } from "../database/sqlErrors.ts";
import { CodedError, internalError } from "../base/errors.ts";
import { authentications } from "../admission/semaphores.ts";
import { partyOf } from "../admission/party.ts";
import { accessTokenPrefix, accessTokenSha256, isAccessToken } from "./accessToken.ts";
import { anonymous, type Claims } from "../database/claims.ts";
import { KnownTokens, type KnownToken } from "./knownTokens.ts";
import { createLoginTokens, type LoginTokenKey } from "./loginToken.ts";
import { TokenCheck, type Access, type TokenFacts } from "../database/tokenCheck.ts";

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
/** Of tokens that agents use. */
const byAgentToken = {
  name: "authenticate_agent_token",
  text: "select * from app_private.authenticate_access_token($1, 'MCP')",
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

const NOTHING = "{}|{}|{}|{}|{}";

/** Settings for app_hidden.handed_access; null where there is too much to hand on. */
function toAccess({ access, classes, parties, version }: AccessRow): Access | null {
  if (access === null) return null;
  const settings: Record<string, string> = { "plat.access": access, "plat.access_": NOTHING };
  for (const [index, sets] of (classes ?? []).entries()) settings[`plat.access_${index + 1}`] = sets;
  return { settings, parties, version };
}

/** Who asks, and for a token that was looked up a moment ago the check that goes along with the statements of a query. */
export interface Authenticated {
  readonly claims: Claims;
  /** What the token is looked up by; undefined for a visitor. */
  readonly facts?: TokenFacts;
  readonly check?: TokenCheck;
}

/** A token that was looked up: what it stands for, and what it is looked up by again without its text. */
export interface Bearer {
  readonly claims: Claims;
  readonly facts: TokenFacts;
  /** When it expires by itself, in seconds since 1970; undefined: the database knows. */
  readonly expiresAt: number | undefined;
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
 * @param options.pool connections of plat_authenticator
 * @param options.keys those of login tokens; the first one signs
 * @returns a function that throws CodedError UNAUTHENTICATED for a bad token, UNAVAILABLE or INTERNAL when the look-up fails; `ip` says who
 * waits with whom when there are many at once; `carries` says that the caller sees to the check that it may get
 */
export function createAuthenticator(options: {
  pool: Pick<Pool, "query">;
  keys: readonly LoginTokenKey[];
  /** Where the tokens are taken that it knows: by the API where omitted, which takes login tokens too. */
  audience?: "API" | "MCP";
}): Authenticator {
  const { pool, audience = "API" } = options;
  const ofAgents = audience === "MCP";
  const loginTokens = createLoginTokens(options.keys);
  const knownTokens = new KnownTokens();

  async function find(
    ip: string | undefined,
    query: typeof bySession,
    values: unknown[],
    key: string,
    { sessionId, expiresAt }: { sessionId?: string | undefined; expiresAt?: number | undefined } = {},
  ): Promise<Bearer> {
    const { rows } = await authentications
      .run(partyOf(null, ip), () => pool.query<AuthenticatedRow>({ ...query, values }))
      .catch(lookUpFailed);
    const [row] = rows;
    if (!row) {
      knownTokens.forget(key);
      throw refusal("The token has ended: it is unknown, expired or revoked. Sign in again.");
    }
    const claims: Claims = {
      userId: row.viewer_id,
      readOnly: row.read_only,
      ...(sessionId !== undefined && { sessionId }),
      ...(row.token_id !== null && { tokenId: row.token_id }),
      ...(row.organization_id !== null && { organizationId: row.organization_id }),
      ...(row.scopes !== null && { scopes: row.scopes }),
      ...(row.second_factor_withholds && { secondFactorWithholds: row.second_factor_withholds }),
      ...(ofAgents && { isAgent: true }),
    };
    const tokenSha256 = row.token_id === null ? null : (values[0] as Buffer);
    const facts = { userId: row.viewer_id, sessionId: sessionId ?? null, tokenSha256 };
    // Without a row of its own a session cannot be asked about; and what is withheld ends at any moment.
    const isCheckable = (sessionId ?? tokenSha256) !== null && !row.second_factor_withholds;
    if (isCheckable) knownTokens.keep(key, { claims, facts, expiresAt });
    else knownTokens.forget(key);
    return { claims, facts, expiresAt };
  }

  /** Has the access of a token found that is used again, while nobody waits for it. */
  function findAccess(key: string, known: KnownToken): void {
    const { userId, organizationId, scopes } = known.claims;
    knownTokens.keepAccess(key, known, null);
    authentications
      .run(partyOf(userId, undefined), () =>
        pool.query<AccessRow>({ ...accessOf, values: [userId, organizationId ?? null, scopes ?? null] }),
      )
      .then(({ rows }) => knownTokens.keepAccess(key, known, toAccess(rows[0]!)))
      // Without it, each statement finds what it needs by itself.
      .catch(() => knownTokens.keepAccess(key, known, undefined));
  }

  async function lookUp(token: string, key: string, ip: string | undefined): Promise<Bearer> {
    if (ofAgents && !token.startsWith(accessTokenPrefix))
      throw refusal(
        "Agents take an access token that was made for them: createAccessToken with audience: MCP.",
      );
    if (!token.startsWith(accessTokenPrefix)) {
      const { sub, epoch, sid, jti, exp } = loginTokens.verify(token);
      const sessionId = sid ?? jti;
      const values = [sub, epoch, sessionId ?? null, sid !== undefined, ip ?? null, exp];
      return find(ip, bySession, values, key, { sessionId, expiresAt: exp });
    }
    if (!isAccessToken(token)) throw refusal("This access token is mistyped or incomplete.");
    return find(ip, ofAgents ? byAgentToken : byAccessToken, [accessTokenSha256(token)], key);
  }

  /** The token of a header, and what it is known by. */
  function tokenOf(authorizationHeader: string): { token: string; key: string } {
    const token = /^Bearer +(\S+)$/i.exec(authorizationHeader)?.[1];
    if (token === undefined)
      throw refusal("The Authorization header has to be: Bearer, a space, and the token.");
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
      const { claims, facts } = await lookUp(token, key, ip);
      return { claims, facts };
    }
    if (known.access === undefined) findAccess(key, known);
    const renew = async (refused: boolean) => {
      // A look-up that goes ahead, as it does of each mutation, says nothing of the access: that has versions.
      if (refused) knownTokens.forget(key);
      return (await lookUp(token, key, ip)).claims;
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
      return lookUp(token, key, ip);
    },
    async again({ userId, sessionId, tokenSha256 }: TokenFacts, ip?: string) {
      // By no key that a header has: what is known of those stays.
      const found = tokenSha256
        ? await find(ip, byAccessToken, [tokenSha256], "")
        : await find(ip, bySession, [userId, 0, sessionId, true, ip ?? null, null], "", {
            sessionId: sessionId ?? undefined,
          });
      knownTokens.forget("");
      return found.claims;
    },
  });
}

/** Whatever the database refuses here, the caller did nothing wrong: an error of ours, UNAVAILABLE where it cannot be reached or takes too long. */
function lookUpFailed(error: unknown): never {
  if (error instanceof CodedError) throw error;
  // The driver's own errors, of a connection that is lost or cannot be made, have no code.
  const known = isSqlError(error) ? error : new DatabaseConnectionError("08006", error);
  const coded = fromSqlError(known, new Map(), { signedIn: true });
  if (coded.code === "UNAVAILABLE") throw coded;
  // It took too long, as where the server stands still: the same as one that does not answer.
  if (["57014", LOCK_NOT_AVAILABLE].includes(known.code))
    throw fromSqlError(new DatabaseConnectionError("08006", error), new Map(), { signedIn: true });
  throw internalError(error);
}

function refusal(message: string): CodedError {
  return new CodedError("UNAUTHENTICATED", message);
}
