/** An account at the OpenID Connect provider of the operator: consent by authorization code with PKCE, tokens refreshed before they end. */
import type { Adapter } from "../adapter.ts";

const adapter: Adapter = {
  async connect(connection, { consentUrl, freshTokens }) {
    if (connection.credentials) return freshTokens(connection.credentials);
    return {
      pending: "Open config.authorizationUrl of the answer within 15 minutes and give your consent.",
      shown: { authorizationUrl: await consentUrl(connection) },
    };
  },
};

export default adapter;
