/// <reference types="postgraphile" />
/**
 * Gives app_public.login_token, the claims that the database decided on, out as a signed token: a String in GraphQL.
 * The key never reaches the database, so a dump of it signs nothing.
 */
import type { LoginTokens } from "../auth/loginToken.ts";

declare global {
  namespace GraphileConfig {
    interface Preset {
      plat?: PlatOptions;
    }
    interface PlatOptions {
      /** Signs the claims of a login token. */
      signLoginToken?: LoginTokens["sign"];
    }
  }
}

const unsigned = () => {
  throw new Error("No login token can be signed: the preset lacks plat.signLoginToken.");
};

export const LoginTokenPlugin: GraphileConfig.Plugin = {
  name: "LoginTokenPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      pgCodecs_PgCodec(info, { pgCodec, pgType }) {
        if (pgType.typname !== "login_token" || pgType.getNamespace()?.nspname !== "app_public") return;
        const sign = info.resolvedPreset.plat?.signLoginToken ?? unsigned;
        pgCodec.fromPg = (claims) => sign(JSON.parse(claims));
      },
    },
  },
  schema: {
    hooks: {
      init: {
        // Before the stock plugin gives the domain a scalar of its own.
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of build.allPgCodecs) {
            if (
              codec.extensions?.pg?.schemaName === "app_public" &&
              codec.extensions.pg.name === "login_token"
            )
              build.setGraphQLTypeForPgCodec(codec, ["input", "output"], "String");
          }
          return _;
        },
      },
    },
  },
};
