/** What the settings say about outside providers and live streams, for those who are handed it. */

/** Where the operator has registered the service. */
export interface OauthClientOptions {
  issuer: string;
  clientId: string;
  /** Undefined for a public client. */
  clientSecret: string | undefined;
}

/** Where a store that speaks S3 keeps the contents of files. */
export interface S3Options {
  bucket: string;
  region: string;
  /** Address of a store other than the well-known one; objects are then addressed by path. */
  endpoint?: string | undefined;
  /** Without them the client looks where its kind usually does: environment, profile, machine role. */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
}

/** An account that text messages are sent from. */
export interface TwilioAccount {
  accountSid: string;
  authToken: string;
  /** A number in E.164, or a messaging service, MG…, which chooses one. */
  sender: string;
  /** Address of another server that speaks the API; without a trailing slash. */
  api?: string | undefined;
}

/** How a provider of drafts is reached. */
export interface RemoteOptions {
  apiKey: string | undefined;
  model: string;
  /** The well-known one of the provider where undefined. */
  baseUrl: string | undefined;
  timeoutMs: number;
}

/** Who writes drafts. */
export interface DraftOptions extends RemoteOptions {
  provider: "openai" | "anthropic";
}

/** How many streams there may be in a process, and how they are shared. */
export interface StreamLimits {
  /** Of the process. */
  readonly total: number;
  readonly ofOrganization: number;
  readonly ofViewer: number;
  /** Of one address, or of one network where it is IPv6; proxies that are trusted speak for many, and tell for whom. */
  readonly ofAddress: number;
  /** Milliseconds that a stream waits for its reader before it is dropped; ten seconds where omitted. */
  readonly readWithinMs?: number;
}
