/** OAuth 2 at the provider of the operator: authorization code with PKCE, by its OpenID Connect discovery document. */
import * as oauth from "oauth4webapi";
import { keepSuccess } from "../base/keepSuccess.ts";
import { ConnectionFailed, type Connected } from "./adapter.ts";
import type { OauthClientOptions } from "../base/providerOptions.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

export interface OauthClient {
  /** The URL for consent, and what must be stored for `redeem`. */
  authorizationUrl(state: string, scopes: readonly string[]): Promise<{ url: string; verifier: string }>;
  /** @param parameters those of the redirect @throws ConnectionFailed */
  redeem(parameters: URLSearchParams, state: string, verifier: string): Promise<Connected>;
  /** @throws ConnectionFailed */
  refresh(credentials: Record<string, DatabaseValue>): Promise<Connected>;
}

const timeoutMs = 10_000;

/** The client of one provider. Its discovery document is loaded on first use; requests time out after ten seconds. */
export function createOauthClient(
  { issuer, clientId, clientSecret }: OauthClientOptions,
  redirectUri: string,
): OauthClient {
  const client: oauth.Client = { client_id: clientId };
  const authentication = clientSecret === undefined ? oauth.None() : oauth.ClientSecretPost(clientSecret);
  const options = () => ({
    signal: AbortSignal.timeout(timeoutMs),
    // Configured by the operator, so it may be a provider on this machine.
    [oauth.allowInsecureRequests]: issuer.startsWith("http:"),
  });
  const server = keepSuccess(async () =>
    oauth.processDiscoveryResponse(new URL(issuer), await oauth.discoveryRequest(new URL(issuer), options())),
  );

  const connected = (
    tokens: oauth.TokenEndpointResponse,
    former: Record<string, DatabaseValue> | undefined,
  ): Connected => {
    const claims = oauth.getValidatedIdTokenClaims(tokens);
    const account = claims && (claims["email"] ?? claims.sub);
    return {
      credentials: {
        accessToken: tokens.access_token,
        // Not every provider returns a new refresh token.
        refreshToken: tokens.refresh_token ?? former?.["refreshToken"],
        scope: tokens.scope,
      },
      ...(tokens.expires_in !== undefined && {
        expiresAt: new Date(Date.now() + tokens.expires_in * 1000),
      }),
      ...(typeof account === "string" && { externalAccount: account }),
    };
  };

  return {
    async authorizationUrl(state, scopes) {
      const { authorization_endpoint: endpoint } = await server().catch(fail);
      if (!endpoint) throw new ConnectionFailed("The provider has no consent page.", { retryable: false });
      const verifier = oauth.generateRandomCodeVerifier();
      const url = new URL(endpoint);
      for (const [name, value] of Object.entries({
        response_type: "code",
        client_id: clientId,
        redirect_uri: redirectUri,
        scope: scopes.join(" "),
        state,
        code_challenge: await oauth.calculatePKCECodeChallenge(verifier),
        code_challenge_method: "S256",
      }))
        url.searchParams.set(name, value);
      return { url: url.href, verifier };
    },
    async redeem(parameters, state, verifier) {
      try {
        const as = await server();
        const valid = oauth.validateAuthResponse(as, client, parameters, state);
        const response = await oauth.authorizationCodeGrantRequest(
          as,
          client,
          authentication,
          valid,
          redirectUri,
          verifier,
          options(),
        );
        return connected(await oauth.processAuthorizationCodeResponse(as, client, response), undefined);
      } catch (error) {
        return fail(error);
      }
    },
    async refresh(credentials) {
      const { refreshToken } = credentials as { refreshToken?: string };
      if (!refreshToken) throw consentEnded();
      try {
        const as = await server();
        const response = await oauth.refreshTokenGrantRequest(
          as,
          client,
          authentication,
          refreshToken,
          options(),
        );
        return connected(await oauth.processRefreshTokenResponse(as, client, response), credentials);
      } catch (error) {
        return fail(error);
      }
    },
  };
}

const consentEnded = (cause?: unknown) =>
  new ConnectionFailed("The consent has ended; refresh the integration and consent again.", {
    retryable: false,
    dropCredentials: true,
    cause,
  });

/** The error for people: error codes of the provider, never what was sent to it. */
function fail(error: unknown): never {
  if (error instanceof ConnectionFailed) throw error;
  const { error: code, status } = error as { error?: unknown; status?: number };
  if (code === "access_denied")
    throw new ConnectionFailed("The consent was not given.", { retryable: false, cause: error });
  if (code === "invalid_grant") throw consentEnded(error);
  if (typeof code === "string" && (status ?? 400) < 500)
    throw new ConnectionFailed(
      `The provider rejected the request (${code.slice(0, 60).replace(/[^\w .-]/g, "")}).`,
      {
        retryable: false,
        cause: error,
      },
    );
  throw new ConnectionFailed("The provider returned an unexpected response.", {
    retryable: true,
    cause: error,
  });
}
