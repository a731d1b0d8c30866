/** What a file of src/integrations/apps does for its application: see docs/integrations.md. */
import type { Compute } from "../compute/pool.ts";
import type { AddressPolicy } from "../network/publicAddress.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** An integration as its application's file sees it. */
export interface Connection {
  id: string;
  scope: "ORGANIZATION" | "USER";
  name: string;
  status: string;
  /** By the schema of the application. */
  config: Record<string, DatabaseValue>;
  /** By the schema of the application, or what `connect` gave; undefined where there are none. */
  credentials: Record<string, DatabaseValue> | undefined;
  app: AppFacts;
}

export interface AppFacts {
  key: string;
  name: string;
  authType: string;
  oauthScopes: string[];
  /** JSON Schema; null where there is nothing to say. */
  configSchema: object | null;
  credentialsSchema: object | null;
}

/** What came of connecting. */
export interface Connected {
  /** What is still missing, in a sentence: the integration is not connected yet. */
  pending?: string;
  /** To be kept; those of before where omitted. */
  credentials?: Record<string, unknown>;
  /** When they end: they are refreshed before. */
  expiresAt?: Date;
  /** What it is connected with, as the application calls it. */
  externalAccount?: string;
  /** What a caller names it by, of which a SHA-256 is kept. */
  lookup?: string;
  /** Members of config in the answer of the operation, and never again. */
  shown?: Record<string, unknown>;
  /** For the function in the database that the catalogue names. */
  extra?: Record<string, unknown>;
}

export interface Tools {
  /** Seals the secret that signs what the integration's own webhook sends. */
  sealWebhookSecret(secret: string): string;
  policy: AddressPolicy;
  /** Computes what users wrote. */
  compute: Compute;
  /** Whose computation it is: the integration's owner, or whoever asks. */
  tenant: string;
  /** The service's own address, without a trailing slash. */
  baseUrl: string;
  /** Which of these no event has. */
  unknownEvent(names: string[]): Promise<string | undefined>;
  /** Where consent is given. */
  consentUrl(connection: Connection): Promise<string>;
  /** Fresh tokens for those that end. */
  freshTokens(credentials: Record<string, DatabaseValue>): Promise<Connected>;
}

export interface Adapter {
  /** Refuses a config that the schema allows, but that cannot be. @throws Misconfigured */
  check?(config: Record<string, DatabaseValue>, tools: Tools): Promise<void>;
  /** Asks the application whether it lets the integration in. @throws ConnectionFailed */
  connect(connection: Connection, tools: Tools): Promise<Connected>;
}

/** A value of config or credentials that cannot be; `path` is such as config.mapping.email. */
export class Misconfigured extends Error {
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.name = "Misconfigured";
    this.path = path;
  }
}

/** The application did not let the integration in. The message is for people, and has nothing secret in it. */
export class ConnectionFailed extends Error {
  /** Whether it may do so later, without anybody changing anything. */
  readonly retryable: boolean;
  /** Whether what it was let in by is worth nothing any more. */
  readonly dropCredentials: boolean;

  constructor(
    message: string,
    {
      retryable,
      dropCredentials = false,
      cause,
    }: { retryable: boolean; dropCredentials?: boolean; cause?: unknown },
  ) {
    super(message, { cause });
    this.name = "ConnectionFailed";
    this.retryable = retryable;
    this.dropCredentials = dropCredentials;
  }
}
