/**
 * The GraphQL schema without a server. It depends on the catalog of a database, on the code, and on the signing keys; so a schema built
 * from one database serves any other with the same catalog and keys.
 */
import { makeSchema } from "postgraphile";
import type { GraphQLSchema } from "postgraphile/graphql";
import { makePool } from "../database/pool.ts";
import type { GraphqlInstance } from "./startGraphql.ts";
import { createPreset, type PresetOptions } from "./graphqlPreset.ts";

const unused = () => {
  throw new Error("Nothing is served here.");
};

/** The preset of a schema that is only built, not served, on connections of plat_authenticator. */
export function schemaOnlyPreset(
  pool: PresetOptions["pool"],
  options: Partial<Pick<PresetOptions, "signLoginToken" | "signFileAddress" | "adaptor">> = {},
): GraphileConfig.Preset {
  return createPreset({
    pool,
    signLoginToken: unused,
    signFileAddress: unused,
    files: { admit: unused, take: unused, release: unused, read: unused },
    seal: { mark: "", seal: unused, open: unused },
    webhookTransforms: { publicAddress: unused, freshSecret: unused },
    workflowChecks: unused,
    paymentTransforms: { cardToken: unused, payment: unused, refund: unused, representative: unused },
    draftTransforms: { composeLeadEmail: unused },
    integrationTransforms: { hideCredentials: unused, connectIntegration: unused },
    ...options,
  });
}

/**
 * Reads a database and builds its schema.
 * @param authenticatorUrl the connection string of the API
 * @param options the signing keys, without which nothing can be signed, and the adaptor. Default: the one of the API
 */
export async function buildSchema(
  authenticatorUrl: string,
  options: Parameters<typeof schemaOnlyPreset>[1] = {},
): Promise<GraphQLSchema> {
  const pool = makePool({ connectionString: authenticatorUrl, max: 2 });
  try {
    return (await makeSchema(schemaOnlyPreset(pool, options))).schema;
  } finally {
    await pool.end();
  }
}

/** The equivalent of `postgraphile` for an existing schema. */
export function servedSchema(
  schema: Promise<GraphQLSchema>,
): (preset: GraphileConfig.Preset) => GraphqlInstance {
  schema.catch(() => {});
  return (preset) => {
    let server: ReturnType<Parameters<GraphqlInstance["createServ"]>[0]> | undefined;
    return {
      createServ: (grafserv) => {
        const created = grafserv({ preset, schema });
        server = created;
        return created;
      },
      getSchema: () => schema,
      release: async () => {
        await server?.release();
      },
    };
  };
}
