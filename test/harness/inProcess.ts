import { makeSchema } from "postgraphile";
import { grafast } from "postgraphile/grafast";
import type { ExecutionResult } from "postgraphile/graphql";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import { type Claims, pgSettings } from "../../src/auth/claims.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { makePool } from "../../src/database/pool.ts";
import { toCodedError } from "../../src/http/toCodedError.ts";
import { createPreset } from "../../src/preset.ts";

export interface Answer {
  data: any;
  /** Code and extensions of each error, as the API tells them. */
  errors: Record<string, unknown>[];
}

export interface InProcessApi extends AsyncDisposable {
  /** Runs a document as the bearer of the token; refused tokens reject. */
  send(source: string, token?: string, ip?: string): Promise<Answer>;
}

/** The GraphQL schema over a database, without the transport. */
export async function startInProcess(authenticatorUrl: string): Promise<InProcessApi> {
  const pool = makePool({ connectionString: authenticatorUrl, max: 10 });
  const keys = [{ kid: "test", secret: "a secret of the tests, long enough" }];
  const { schema, resolvedPreset } = await makeSchema({
    extends: [createPreset({ pool, signLoginToken: createLoginTokens(keys).sign })],
    grafast: {
      context: (request) => {
        const { claims, ip } = request as unknown as { claims: Claims; ip: string };
        return { claims, ip, pgSettings: pgSettings(claims, { requestId: "test", ip, channel: "API" }) };
      },
    },
  });
  const authenticate = createAuthenticator({ pool, keys });

  return {
    async send(source, token, ip = "192.0.2.1") {
      const claims = await authenticate(token && `Bearer ${token}`);
      const requestContext = { claims, ip } as object;
      const { data, errors } = (await grafast({
        schema,
        source,
        resolvedPreset,
        requestContext,
      })) as ExecutionResult;
      return {
        data,
        errors: (errors ?? []).map((error) => {
          const { code, message, extensions } = toCodedError(error, new Map(), claims.userId !== null);
          return { code, message, ...extensions };
        }),
      };
    },
    async [Symbol.asyncDispose]() {
      await resolvedPreset.pgServices?.[0]?.release?.();
      await pool.end();
    },
  };
}
