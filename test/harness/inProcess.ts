import { Pool } from "pg";
import { makeSchema } from "postgraphile";
import { grafast } from "postgraphile/grafast";
import type { ExecutionResult } from "postgraphile/graphql";
import { createAuthenticator } from "../../src/auth/authenticate.ts";
import { type Claims, pgSettings } from "../../src/auth/claims.ts";
import { createLoginTokens } from "../../src/auth/loginToken.ts";
import { hashPassword, provePassword, type TransformContext } from "../../src/auth/passwords.ts";
import { toCodedError } from "../../src/http/toCodedError.ts";
import { LoginTokenPlugin } from "../../src/plugins/LoginTokenPlugin.ts";
import type { ArgumentTransform } from "../../src/plugins/OperationsPlugin.ts";
import { SignInPlugin } from "../../src/plugins/SignInPlugin.ts";
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
  const pool = new Pool({ connectionString: authenticatorUrl, max: 10 });
  const keys = [{ kid: "test", secret: "a secret of the tests, long enough" }];
  const transform =
    (implementation: (value: string, context: TransformContext) => Promise<string>): ArgumentTransform =>
    (value, { context, ...rest }) => {
      const { claims, ip } = context as unknown as { claims: Claims; ip: string };
      return implementation(value, { ...rest, pool, claims, ip });
    };
  const { schema, resolvedPreset } = await makeSchema({
    extends: [createPreset({ connectionString: authenticatorUrl })],
    plugins: [LoginTokenPlugin, SignInPlugin],
    plat: { signLoginToken: createLoginTokens(keys).sign },
    schema: {
      argumentTransforms: { hashPassword: transform(hashPassword), provePassword: transform(provePassword) },
    },
    grafast: {
      context: (request) => {
        const { claims, ip } = request as unknown as { claims: Claims; ip: string };
        return { claims, ip, pgSettings: pgSettings(claims, { requestId: "test", ip, channel: "API" }) };
      },
    },
  } as GraphileConfig.Preset);
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
