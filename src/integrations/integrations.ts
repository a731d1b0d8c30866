/**
 * Connecting: the application is called while no transaction is open, and then the result is stored. Operations do so for the viewer
 * (transforms.ts), the redirect of a provider for the user who gave consent, jobs before credentials expire.
 */
import { createHash, randomUUID } from "node:crypto";
import type { Compute } from "../compute/computePool.ts";
import type { AddressPolicy } from "../network/publicAddress.ts";
import type { MailMessage } from "../providers/mail/index.ts";
import { credentialsOf, secretOfWebhook, type Seal, type SealedPlace } from "../secrets/seal.ts";
import { ConnectionFailed, type AppFacts, type Connected, type Connection, type Tools } from "./adapter.ts";
import { adapters } from "./apps/index.ts";
import { sendAs, type SendResult } from "./mailAccounts.ts";
import type { OauthClientOptions } from "../base/providerOptions.ts";
import { createOauthClient } from "./oauth.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

export interface IntegrationsOptions {
  seal: Seal;
  policy: AddressPolicy;
  compute: Compute;
  /** The URL of the service, without a trailing slash. */
  baseUrl: string;
  /** Undefined: no application with OAuth 2 is available. */
  oauth: OauthClientOptions | undefined;
  /** A connection of plat_authenticator for users, of plat_worker for jobs. */
  query(text: string, values: unknown[]): Promise<{ rows: DatabaseValue[] }>;
}

/** Returned by app_private.integration_facts. */
export interface Facts {
  id: string;
  scope: Connection["scope"];
  name: string;
  status: string;
  config: Record<string, DatabaseValue>;
  sealed: string | null;
  /** Its webhook, also before it exists. */
  webhookId: string;
  ownerId: string;
  app: AppFacts;
  /** The user who is asked for consent. */
  userId?: string;
}

/** A new config and credentials. */
export interface Change {
  config?: Record<string, DatabaseValue>;
  credentials?: Record<string, DatabaseValue>;
}

/** Returned by app_private.consent_facts: who requested the consent, and for which organization, if any. */
export interface PendingConsent {
  integration: string;
  person: string;
  email: string | null;
  organization: string | null;
}

export interface Integrations {
  /** Refuses an invalid config or credentials. @param tenant the viewer @throws Misconfigured */
  check(app: AppFacts, change: Change, tenant: string): Promise<void>;
  /** Calls the application, and stores the result. @throws ConnectionFailed once that is stored */
  connect(facts: Facts, how: { change?: Change; byService?: boolean }): Promise<Connected>;
  /** The account that the redirected consent connects with. Undefined if the consent is unknown. */
  waiting(parameters: URLSearchParams): Promise<PendingConsent | undefined>;
  /** Completes a consent with the parameters of the redirect. Undefined if the consent is unknown. @throws ConnectionFailed */
  takeConsent(parameters: URLSearchParams): Promise<Connected | undefined>;
  /** Refreshes in the background. @returns why it failed; undefined on success */
  retry(scope: Connection["scope"], id: string): Promise<string | undefined>;
  /**
   * Refreshes what expires soon, and reseals with the current key.
   * @throws AggregateError with our own failures, after all were tried
   */
  keep(): Promise<void>;
  /** Sends a mail from the user's own account. @returns undefined if they have none, or it did not accept the mail */
  sendAs(userId: string, message: MailMessage): Promise<SendResult | undefined>;
  /** The credentials of an organization's integration; undefined if it does not work. @throws ConnectionFailed */
  account(id: string): Promise<Account | undefined>;
  /** Records a failure of an organization's integration: five in a row, or a permanent one, set its status to ERROR. */
  noteFailure(id: string, failure: ConnectionFailed): Promise<void>;
  /** Records a success of an organization's integration. */
  noteSynced(id: string): Promise<void>;
  sealCredentials(integrationId: string, credentials: object): string;
}

/** How an organization's account at an application is accessed. */
export interface Account {
  config: Record<string, DatabaseValue>;
  credentials: Record<string, DatabaseValue>;
  policy: AddressPolicy;
}

/** Maximum per run, so that one run of the job ends. */
const batch = 50;

/** The schema of credentials if an application requires none. */
const nothing = { type: "object", additionalProperties: false };

/** The redirect of the provider; nobody stores it. */
const consentState: SealedPlace = { column: "state of a consent", row: "" };
const verifierOf = (attemptId: string): SealedPlace => ({
  column: "app_private.oauth_attempts.sealed_verifier",
  row: attemptId,
});

/** The SHA-256 of a secret, as the database stores it for lookups. */
export const sha256 = (text: string): Buffer => createHash("sha256").update(text).digest();

/** Creates the service that connects applications, with the adapters of src/integrations/apps. */
export const createIntegrations = (options: IntegrationsOptions): Integrations =>
  new ConnectedApplications(options);

class ConnectedApplications implements Integrations {
  readonly #options: IntegrationsOptions;
  readonly #query: IntegrationsOptions["query"];
  readonly #client: ReturnType<typeof createOauthClient> | undefined;

  constructor(options: IntegrationsOptions) {
    const { oauth, baseUrl, query } = options;
    this.#options = options;
    this.#query = query;
    this.#client = oauth && createOauthClient(oauth, `${baseUrl}/integrations/callback`);
  }

  sealCredentials(integrationId: string, credentials: object): string {
    return this.#options.seal.seal(JSON.stringify(credentials), credentialsOf(integrationId));
  }

  async check(app: AppFacts, { config, credentials }: Change, tenant: string): Promise<void> {
    // PERF: the library is large, and not every service has integrations.
    const { checkAgainst } = await import("./jsonSchema.ts");
    if (config) checkAgainst(app.configSchema, config, "config");
    if (credentials) checkAgainst(app.credentialsSchema ?? nothing, credentials, "credentials");
    if (config) await adapters[app.key]?.check?.(config, this.#tools(undefined, tenant));
  }

  async connect(
    facts: Facts,
    { change = {}, byService = false }: { change?: Change; byService?: boolean },
  ): Promise<Connected> {
    const { scope, id, name, status, app, userId } = facts;
    try {
      const adapter = adapters[app.key];
      if (!adapter)
        throw new ConnectionFailed("This version of the service does not support the application.", {
          retryable: false,
        });
      // Credentials sealed with a former key remain valid.
      const sealed = change.credentials ? this.sealCredentials(id, change.credentials) : facts.sealed;
      const credentials =
        change.credentials ?? (sealed === null ? undefined : this.#openCredentials(id, sealed));
      const config = change.config ?? facts.config;
      const result = await adapter.connect(
        { id, scope, name, status, config, credentials, app },
        this.#tools(userId, facts.ownerId, facts.webhookId),
      );
      await this.#noteConnected(facts, result, {
        config: change.config,
        sealed: credentials === undefined ? null : this.sealCredentials(id, credentials),
      });
      return result;
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      // A failed change is not applied, so it is not a failure of the existing integration.
      if (Object.keys(change).length === 0) await this.#noteFailure(scope, id, error, byService);
      throw error;
    }
  }

  async waiting(parameters: URLSearchParams): Promise<PendingConsent | undefined> {
    const attempt = this.#attemptOf(parameters);
    if (!attempt) return undefined;
    const { rows } = await this.#query("select * from app_private.consent_facts($1, $2)", attempt);
    return rows[0] as PendingConsent | undefined;
  }

  async takeConsent(parameters: URLSearchParams): Promise<Connected | undefined> {
    const attempt = this.#attemptOf(parameters);
    if (!attempt) return undefined;
    const { rows } = await this.#query("select app_private.take_consent($1, $2) as facts", attempt);
    const facts = rows[0].facts as (Facts & { attemptId: string; sealedVerifier: string }) | null;
    if (!facts) return undefined;
    try {
      const verifier = this.#options.seal.open(facts.sealedVerifier, verifierOf(facts.attemptId));
      const result = await this.#theClient().redeem(parameters, parameters.get("state")!, verifier);
      await this.#noteConnected(facts, result, { config: undefined, sealed: null });
      return result;
    } catch (error) {
      if (error instanceof ConnectionFailed) await this.#noteFailure(facts.scope, facts.id, error, false);
      throw error;
    }
  }

  async retry(scope: Connection["scope"], id: string): Promise<string | undefined> {
    const { rows } = await this.#query("select app_private.integration_facts($1, $2) as facts", [scope, id]);
    const facts = rows[0].facts as Facts | null;
    if (!facts) return "The integration was deleted.";
    try {
      await this.connect(facts, { byService: true });
      return undefined;
    } catch (error) {
      if (error instanceof ConnectionFailed) return error.message;
      throw error;
    }
  }

  async keep(): Promise<void> {
    const { rows: due } = await this.#query("select * from app_private.due_integrations($1)", [batch]);
    const faults: unknown[] = [];
    for (const { scope, id } of due as { scope: Connection["scope"]; id: string }[])
      // Separately: a failure of one must not keep others from being refreshed in time.
      await this.retry(scope, id).catch((error: unknown) => {
        faults.push(new Error(`Integration ${id} could not be refreshed.`, { cause: error }));
      });
    if (faults.length > 0) throw new AggregateError(faults, (faults[0] as Error).message);
  }

  async account(id: string): Promise<Account | undefined> {
    const { rows } = await this.#query("select app_private.integration_facts('ORGANIZATION', $1) as facts", [
      id,
    ]);
    const facts = rows[0].facts as Facts | null;
    if (facts?.status !== "ENABLED" || facts.sealed === null) return undefined;
    return {
      config: facts.config,
      credentials: this.#openCredentials(id, facts.sealed),
      policy: this.#options.policy,
    };
  }

  noteFailure(id: string, failure: ConnectionFailed): Promise<void> {
    return this.#noteFailure("ORGANIZATION", id, failure, true);
  }

  async noteSynced(id: string): Promise<void> {
    await this.#query("select app_private.note_synced('ORGANIZATION', $1)", [id]);
  }

  sendAs(userId: string, message: MailMessage): Promise<SendResult | undefined> {
    return sendAs(userId, message, {
      query: this.#query,
      policy: this.#options.policy,
      openCredentials: (id, sealed) => this.#openCredentials(id, sealed),
      noteFailure: (id, failure) => this.#noteFailure("USER", id, failure, true),
    });
  }

  /** @throws ConnectionFailed if there is none */
  #theClient(): ReturnType<typeof createOauthClient> {
    if (!this.#client)
      throw new ConnectionFailed("The operator has not registered the service with a provider.", {
        retryable: false,
      });
    return this.#client;
  }

  /** The tools that an adapter may use for a user or organization. */
  #tools(userId: string | undefined, tenant: string, webhookId?: string): Tools {
    const { seal, policy, compute, baseUrl } = this.#options;
    return {
      sealWebhookSecret(secret) {
        if (webhookId === undefined) throw new Error("There is no integration whose webhook could sign.");
        return seal.seal(secret, secretOfWebhook(webhookId));
      },
      policy,
      compute,
      tenant,
      baseUrl,
      unknownEvent: async (names) => {
        const { rows } = await this.#query("select app_private.are_event_names($1) as name", [names]);
        return (rows[0].name as string | null) ?? undefined;
      },
      consentUrl: (facts) => this.#consentUrl(userId, facts),
      freshTokens: (credentials) => this.#theClient().refresh(credentials),
    };
  }

  /** Where a user gives consent. @throws ConnectionFailed */
  async #consentUrl(
    userId: string | undefined,
    { scope, id, app }: Parameters<Tools["consentUrl"]>[0],
  ): Promise<string> {
    if (!userId)
      throw new ConnectionFailed("The consent has ended; refresh the integration and consent again.", {
        retryable: false,
      });
    // The state is opaque, bound to this user, and its attempt can be used once.
    const { url, verifier } = await this.#theClient().authorizationUrl("state", app.oauthScopes);
    const attempt = randomUUID();
    await this.#query("select app_private.begin_consent($1, $2, $3, $4, $5)", [
      scope,
      id,
      userId,
      attempt,
      this.#options.seal.seal(verifier, verifierOf(attempt)),
    ]);
    const address = new URL(url);
    address.searchParams.set(
      "state",
      this.#options.seal.seal(JSON.stringify({ id: attempt, userId }), consentState),
    );
    return address.href;
  }

  /** The ids of the attempt and of its user from the state; undefined if the state is not valid. */
  #attemptOf(parameters: URLSearchParams): [id: string, userId: string] | undefined {
    try {
      const { id, userId } = JSON.parse(
        this.#options.seal.open(parameters.get("state") ?? "", consentState),
      ) as Record<string, string>;
      return [id!, userId!];
    } catch {
      return undefined;
    }
  }

  #openCredentials(integrationId: string, sealed: string): Record<string, DatabaseValue> {
    try {
      return JSON.parse(this.#options.seal.open(sealed, credentialsOf(integrationId))) as Record<
        string,
        DatabaseValue
      >;
    } catch (error) {
      throw new ConnectionFailed("The credentials can no longer be decrypted; enter them again.", {
        retryable: false,
        cause: error,
      });
    }
  }

  async #noteConnected(
    { scope, id }: Facts,
    result: Connected,
    { config, sealed }: { config: Record<string, DatabaseValue> | undefined; sealed: string | null },
  ): Promise<void> {
    await this.#query("select app_private.note_connected($1, $2, $3, $4, $5, $6, $7, $8, $9)", [
      scope,
      id,
      config ? JSON.stringify(config) : null,
      result.credentials ? this.sealCredentials(id, result.credentials) : sealed,
      result.lookup === undefined ? null : sha256(result.lookup),
      result.expiresAt ?? null,
      result.externalAccount ?? null,
      result.pending ?? null,
      result.extra ? JSON.stringify(result.extra) : null,
    ]);
  }

  async #noteFailure(
    scope: Connection["scope"],
    id: string,
    { message, retryable, dropCredentials }: ConnectionFailed,
    byService: boolean,
  ): Promise<void> {
    await this.#query("select app_private.note_failed($1, $2, $3, $4, $5, $6)", [
      scope,
      id,
      message,
      !retryable,
      dropCredentials,
      byService,
    ]);
  }
}
