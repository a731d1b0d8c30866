/** Work of the integration mutations before their statement; credentials only reach SQL sealed. */
import { CodedError } from "../../base/errors.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import { ConnectionFailed, Misconfigured } from "../../integrations/adapter.ts";
import type { Change, Facts, Integrations } from "../../integrations/integrations.ts";
import type { DatabaseValue } from "../../database/databaseValue.ts";

export type IntegrationTransforms = Record<"hideCredentials" | "connectIntegration", ArgumentTransform>;

interface Offered {
  answered: boolean;
  requestKey: string | null;
  ownerId: string;
  userId: string;
  app: Facts["app"];
}

/** The implementations of the tags `@transform hideCredentials` and `@transform connectIntegration`. */
export function integrationTransforms(integrations: Integrations): IntegrationTransforms {
  type Ask = (text: string, values: unknown[]) => Promise<DatabaseValue>;
  /** Runs statements with the rights of the viewer, in a separate transaction. */
  function inTransaction<T>(context: Grafast.Context, callback: (ask: Ask) => Promise<T>): Promise<T> {
    const { withPgClient, pgSettings } = context;
    return withPgClient(pgSettings, (client) =>
      client.withTransaction((inside: DatabaseValue) =>
        callback(async (text, values) => (await inside.query({ text, values })).rows[0].begun),
      ),
    );
  }
  /** One statement, in a transaction of its own. */
  async function asViewer(context: Grafast.Context, text: string, values: unknown[]): Promise<DatabaseValue> {
    const { withPgClient, pgSettings } = context;
    const { rows } = await withPgClient(pgSettings, (client: DatabaseValue) =>
      client.query({ text, values }),
    );
    return rows[0].begun;
  }
  const json = (value: unknown) => (value === undefined || value === null ? null : JSON.stringify(value));

  async function check(app: Facts["app"], change: Change, context: Grafast.Context): Promise<void> {
    try {
      // The database has already refused visitors.
      await integrations.check(app, change, context.claims.userId!);
    } catch (error) {
      if (!(error instanceof Misconfigured)) throw error;
      throw new CodedError("BAD_USER_INPUT", error.message, { field: error.path }, { cause: error });
    }
  }

  return {
    hideCredentials: () => null,
    async connectIntegration(_value, { context, input, operation, repeat }) {
      const scope = operation.endsWith("UserIntegration") ? "USER" : "ORGANIZATION";
      const text = (name: string) => (input[name] as string | null | undefined) ?? null;
      const change: Change = {};
      for (const name of ["config", "credentials"] as const) {
        const value = input[name];
        if (value !== undefined && value !== null) change[name] = value as Record<string, unknown>;
      }
      if (operation.startsWith("create")) {
        const offered: Offered = await asViewer(
          context,
          "select app_hidden.offered_app($1, $2, $3, $4) as begun",
          [scope, text("organizationId"), text("appKey"), json(repeat)],
        );
        if (offered.answered) return null;
        const { app, ownerId, requestKey, userId } = offered;
        if (app.credentialsSchema && !change.credentials)
          throw new CodedError("BAD_USER_INPUT", "This application requires credentials.", {
            field: "credentials",
          });
        await check(app, { ...change, config: change.config ?? {} }, context);
        const facts = await inTransaction(context, async (ask) => {
          const begun: Facts = await ask(
            "select app_hidden.begin_integration($1, $2, $3, $4, $5, $6) as begun",
            [scope, ownerId, app.key, text("name"), json(change.config), requestKey],
          );
          // A replayed request already has its own.
          if (!change.credentials || begun.sealed !== null) return begun;
          const sealed = integrations.sealCredentials(begun.id, change.credentials);
          await ask("select app_hidden.keep_credentials($1, $2, $3) as begun", [scope, begun.id, sealed]);
          return { ...begun, sealed };
        });
        try {
          const { shown } = await integrations.connect({ ...facts, userId }, {});
          return { id: facts.id, shown };
        } catch (error) {
          // It exists with the status PENDING, and lastError gives the reason.
          if (error instanceof ConnectionFailed) return { id: facts.id };
          throw error;
        }
      }
      const facts: Facts & { answered: boolean } = await asViewer(
        context,
        "select app_hidden.integration_to_connect($1, app_hidden.record_id($2, $3, 'id'), $4) as begun",
        [
          scope,
          scope === "USER" ? "user_integrations" : "organization_integrations",
          text("id"),
          json(repeat),
        ],
      );
      if (facts.answered) return null;
      if (operation.startsWith("update")) {
        if (Object.keys(change).length === 0) return { id: facts.id };
        await check(facts.app, change, context);
      }
      try {
        const { shown } = await integrations.connect(facts, { change });
        return { id: facts.id, shown };
      } catch (error) {
        if (!(error instanceof ConnectionFailed)) throw error;
        throw new CodedError(
          "PROVIDER_ERROR",
          error.message,
          { provider: facts.app.key, retryable: error.retryable },
          { cause: error },
        );
      }
    },
  };
}
