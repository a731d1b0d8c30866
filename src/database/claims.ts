/** The viewer and the permissions of their token, as determined by `createAuthenticator`. */
export interface Claims {
  /** Null without a token. */
  readonly userId: string | null;
  /** The session of the login token; undefined with an access token. */
  readonly sessionId?: string;
  /** The access token; undefined with a login token. */
  readonly tokenId?: string;
  readonly readOnly: boolean;
  /** The only organization in which the access token is valid; undefined for all of its user. */
  readonly organizationId?: string;
  /**
   * Whether some or all organizations of the user refuse access because there is no second factor; undefined if none
   * does.
   */
  readonly secondFactorWithholds?: "SOME" | "ALL";
  /** Whether an AI acts for the user. */
  readonly isAgent?: boolean;
  /** Permissions that the access token is restricted to; undefined for all of its user. */
  readonly scopes?: readonly string[];
}

/** The viewer without a token. */
export const anonymous: Claims = Object.freeze({ userId: null, readOnly: false });

/** Request context for the database. */
export interface RequestFacts {
  readonly requestId: string;
  /** Client address, as determined by the transport. */
  readonly ip?: string;
  /** User agent; stored with signatures. */
  readonly userAgent?: string;
  /** Channel of the request: UI, API, SYSTEM, IMPORT, INTEGRATION or WEBHOOK. */
  readonly channel: string;
  /** W3C `traceparent` of the request, if it is traced; passed on to jobs. */
  readonly traceparent?: string | undefined;
  /** Preferred language of the client, if there is a catalogue for it. */
  readonly language?: string | undefined;
}

/** Visitors share few connections, so none may hold one for long. */
const VISITOR_STATEMENT_TIMEOUT = "8s";

/** Settings of a transaction for these claims. Policies and functions read them; omitted settings do not apply. */
export function pgSettings(claims: Claims, facts: RequestFacts): Record<string, string> {
  const { userId, sessionId, tokenId, organizationId, scopes, readOnly, isAgent } = claims;
  const settings: Record<string, string> = {
    role: userId === null ? "plat_anonymous" : "plat_user",
    "plat.request_id": facts.requestId,
    "plat.channel": facts.channel,
    // Settings from the token check replace these; nothing else may.
    "plat.access": "",
  };
  if (userId === null) settings.statement_timeout = VISITOR_STATEMENT_TIMEOUT;
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

/** Modified in place, since plan steps already hold the object, which must belong to this request. */
export function replaceSettings(settings: Record<string, string>, by: Record<string, string>): void {
  for (const name of Object.keys(settings)) delete settings[name];
  Object.assign(settings, by);
}

/** Settings for a user who has just signed in, without the restrictions of the token of the request. */
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
