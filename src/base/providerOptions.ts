/** Settings of external providers and live streams, as passed to their users. */

/** OAuth client of the operator. */
export interface OauthClientOptions {
  issuer: string;
  clientId: string;
  /** Undefined for a public client. */
  clientSecret: string | undefined;
}

/** An S3-compatible store for the contents of files. */
export interface S3Options {
  bucket: string;
  region: string;
  /** Endpoint of a store other than AWS; objects are then addressed by path. */
  endpoint?: string | undefined;
  /** Default: the usual credential chain: environment, profile, machine role. */
  credentials?: { accessKeyId: string; secretAccessKey: string } | undefined;
}

/** The account that sends text messages. */
export interface TwilioAccount {
  accountSid: string;
  authToken: string;
  /** A number in E.164, or a messaging service (MG…), which selects one. */
  sender: string;
  /** Endpoint of another server with the same API; without a trailing slash. */
  api?: string | undefined;
}

/** Connection to a drafting provider. */
export interface RemoteOptions {
  apiKey: string | undefined;
  model: string;
  /** Default: the endpoint of the provider. */
  baseUrl: string | undefined;
  timeoutMs: number;
}

/** The draft provider. */
export interface DraftOptions extends RemoteOptions {
  provider: "openai" | "anthropic";
}

/** Limits of event streams. */
export interface StreamLimits {
  /** Per process. */
  readonly total: number;
  readonly ofOrganization: number;
  readonly ofViewer: number;
  /** Per address, or per network with IPv6. Trusted proxies forward the addresses of their clients. */
  readonly ofAddress: number;
  /** Milliseconds that a stream waits for its reader before it is closed. Default: ten seconds. */
  readonly readWithinMs?: number;
}
