/** Who is asking and what the token in use allows, as `createAuthenticator` found it. */
export interface Claims {
  /** Null without a token. */
  readonly userId: string | null;
  /** The session of the login token in use; undefined with an access token. */
  readonly sessionId?: string;
  /** The access token in use; undefined with a login token. */
  readonly tokenId?: string;
  readonly readOnly: boolean;
  /** The only organization that the access token works in; undefined: all of its user. */
  readonly organizationId?: string;
  /** Whether some or all organizations of the user refuse them because they have no second factor; undefined: none does. */
  readonly secondFactorWithholds?: "SOME" | "ALL";
  /** Whether an AI acts for the user. */
  readonly isAgent?: boolean;
  /** The permissions that the access token is restricted to; undefined: all of its user. */
  readonly scopes?: readonly string[];
}

/** The viewer without a token. */
export const anonymous: Claims = Object.freeze({ userId: null, readOnly: false });

/** What else the database is told about a request. */
export interface RequestFacts {
  readonly requestId: string;
  /** The caller's address, as the transport trusts it. */
  readonly ip?: string;
  /** The caller's program, as it says; kept with what is signed. */
  readonly userAgent?: string;
  /** The way the request came in: UI, API, SYSTEM, IMPORT, INTEGRATION or WEBHOOK. */
  readonly channel: string;
  /** The W3C `traceparent` of the request, where it is recorded; jobs take it along. */
  readonly traceparent?: string | undefined;
  /** What the caller's program asks for, where there is a catalogue of it. */
  readonly language?: string | undefined;
}

/** Strangers share few connections, so none of them may hold one for long. */
const STRANGERS_STATEMENT_TIMEOUT = "8s";

/**
 * The settings of a transaction that acts for these claims. The database's policies and functions read them; whatever is
 * not said here does not hold there.
 */
export function pgSettings(claims: Claims, facts: RequestFacts): Record<string, string> {
  const { userId, sessionId, tokenId, organizationId, scopes, readOnly, isAgent } = claims;
  const settings: Record<string, string> = {
    role: userId === null ? "plat_anonymous" : "plat_user",
    "plat.request_id": facts.requestId,
    "plat.channel": facts.channel,
    // What a check hands on takes its place; nothing else may.
    "plat.access": "",
  };
  if (userId === null) settings.statement_timeout = STRANGERS_STATEMENT_TIMEOUT;
  if (facts.ip !== undefined) settings["plat.ip"] = facts.ip;
  if (facts.language !== undefined) settings["plat.language"] = facts.language;
  if (facts.traceparent !== undefined) settings["plat.traceparent"] = facts.traceparent;
  if (facts.userAgent !== undefined) settings["plat.user_agent"] = facts.userAgent;
  if (userId !== null) settings["plat.user_id"] = userId;
  if (sessionId !== undefined) settings["plat.session_id"] = sessionId;
  if (tokenId !== undefined) settings["plat.token_id"] = tokenId;
  if (organizationId !== undefined) settings["plat.organization_id"] = organizationId;
  if (scopes !== undefined) {
    // An empty list would be read as no restriction.
    if (scopes.length === 0) throw new Error("An access token restricted to no scope at all cannot be.");
    settings["plat.scopes"] = scopes.join(",");
  }
  if (isAgent) settings["plat.actor_type"] = "AI";
  if (readOnly) settings.transaction_read_only = "on";
  return settings;
}

/** In place: steps of the plan hold the object already. It has to be the request's own. */
export function replaceSettings(settings: Record<string, string>, by: Record<string, string>): void {
  for (const name of Object.keys(settings)) delete settings[name];
  Object.assign(settings, by);
}

/** These settings for a user who has just signed in: without the restrictions of the token that the request came with. */
export function signedInSettings(settings: Record<string, string>, userId: string): Record<string, string> {
  const kept = [
    "plat.access",
    "plat.request_id",
    "plat.traceparent",
    "plat.channel",
    "plat.ip",
    "plat.user_agent",
  ].filter((name) => name in settings);
  return {
    role: "plat_user",
    "plat.user_id": userId,
    ...Object.fromEntries(kept.map((name) => [name, settings[name]!])),
  };
}
