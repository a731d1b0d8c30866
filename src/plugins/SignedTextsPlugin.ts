/// <reference types="postgraphile" />
/**
 * Values decided by the database and signed by the API: login tokens, file URLs. The keys never reach the database,
 * so a dump of it cannot sign anything.
 */
import type { LoginTokens } from "../auth/loginToken.ts";
import type { FileAddresses } from "../files/addresses.ts";

declare global {
  namespace GraphileConfig {
    interface Plugins {
      SignedTextsPlugin: true;
    }
    interface Preset {
      plat?: PlatOptions;
    }
    interface PlatOptions {
      /** Signs the claims of a login token. */
      signLoginToken?: LoginTokens["sign"];
      /** Creates a URL from SQL's description of a file. */
      signFileAddress?: FileAddresses["sign"];
    }
  }
}

/** Signers by domain of app_public, with their GraphQL types. */
const domains: Readonly<Record<string, { option: "signLoginToken" | "signFileAddress"; type: string }>> = {
  login_token: { option: "signLoginToken", type: "String" },
  file_address: { option: "signFileAddress", type: "URL" },
};

const domainOf = (schema: string | undefined, name: string | undefined) =>
  schema === "app_public" && name !== undefined && Object.hasOwn(domains, name) ? domains[name] : undefined;

export const SignedTextsPlugin: GraphileConfig.Plugin = {
  name: "SignedTextsPlugin",
  version: "1.0.0",
  gather: {
    hooks: {
      pgCodecs_PgCodec(info, { pgCodec, pgType }) {
        const domain = domainOf(pgType.getNamespace()?.nspname, pgType.typname);
        if (!domain) return;
        const sign = info.resolvedPreset.plat?.[domain.option];
        pgCodec.fromPg = (claims) => {
          if (!sign) throw new Error(`Nothing can be signed: the preset lacks plat.${domain.option}.`);
          return sign(JSON.parse(claims));
        };
      },
    },
  },
  schema: {
    hooks: {
      init: {
        // Before the stock plugin maps the domain to a separate scalar.
        before: ["PgCodecs"],
        callback(_, build) {
          for (const codec of build.allPgCodecs) {
            const { schemaName, name } = codec.extensions?.pg ?? {};
            const domain = domainOf(schemaName, name);
            if (domain) build.setGraphQLTypeForPgCodec(codec, ["input", "output"], domain.type);
          }
          return _;
        },
      },
    },
  },
};
