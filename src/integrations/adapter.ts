/** The interface of a file in src/integrations/apps; see docs/integrations.md. */
import type { Compute } from "../compute/computePool.ts";
import type { AddressPolicy } from "../network/publicAddress.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** An integration, as passed to its application's file. */
export interface Connection {
  id: string;
  scope: "ORGANIZATION" | "USER";
  name: string;
  status: string;
  /** By the schema of the application. */
  config: Record<string, DatabaseValue>;
  /** By the schema of the application, or as returned by `connect`; undefined if there are none. */
  credentials: Record<string, DatabaseValue> | undefined;
  app: AppFacts;
}

export interface AppFacts {
  key: string;
  name: string;
  authType: string;
  oauthScopes: string[];
  /** JSON Schema; null if there are no settings. */
  configSchema: object | null;
  credentialsSchema: object | null;
}

/** The result of connecting. */
export interface Connected {
  /** What is still missing, in a sentence: the integration is not connected yet. */
  pending?: string;
  /** To be stored; the previous ones by default. */
  credentials?: Record<string, unknown>;
  /** When they expire: they are refreshed before. */
  expiresAt?: Date;
  /** The account that it is connected with, as the application names it. */
  externalAccount?: string;
  /** A token by which callers identify it; its SHA-256 is stored. */
  lookup?: string;
  /** Fields of config that are only returned in the answer of the operation. */
  shown?: Record<string, unknown>;
  /** For the database function that the catalogue names. */
  extra?: Record<string, unknown>;
}

export interface Tools {
  /** Seals the signing secret of the integration's webhook. */
  sealWebhookSecret(secret: string): string;
  policy: AddressPolicy;
  /** Evaluates user-written texts. */
  compute: Compute;
  /** The tenant of the computation: the integration's owner, or the viewer. */
  tenant: string;
  /** The URL of the service, without a trailing slash. */
  baseUrl: string;
  /** Those of the names that are not events. */
  unknownEvent(names: string[]): Promise<string | undefined>;
  /** The URL where the user gives consent. */
  consentUrl(connection: Connection): Promise<string>;
  /** New tokens for expiring ones. */
  freshTokens(credentials: Record<string, DatabaseValue>): Promise<Connected>;
}

export interface Adapter {
  /** Refuses a config that matches the schema but is invalid. @throws Misconfigured */
  check?(config: Record<string, DatabaseValue>, tools: Tools): Promise<void>;
  /** Checks with the application whether it accepts the credentials. @throws ConnectionFailed */
  connect(connection: Connection, tools: Tools): Promise<Connected>;
}

/** An invalid value of config or credentials; `path` is such as config.mapping.email. */
export class Misconfigured extends Error {
  readonly path: string;

  constructor(path: string, message: string) {
    super(message);
    this.name = "Misconfigured";
    this.path = path;
  }
}

/** The application did not accept the integration. The message is for people, and contains no secrets. */
export class ConnectionFailed extends Error {
  /** Whether it may succeed later without any change. */
  readonly retryable: boolean;
  /** Whether the credentials have become invalid. */
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
