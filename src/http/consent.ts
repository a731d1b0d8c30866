/** GET /integrations/callback: where the provider leads back whoever gave, or refused, consent. */
import type { RequestHandler } from "express";
import { CodedError } from "../errors.ts";
import { ConnectionFailed } from "../integrations/adapter.ts";
import type { Integrations } from "../integrations/integrations.ts";
import { requestState } from "./requestState.ts";

export function consentPage(integrations: Integrations): RequestHandler {
  return async (request, response) => {
    const parameters = new URL(request.originalUrl, "https://localhost").searchParams;
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Referrer-Policy", "no-referrer");
    try {
      const taken = await integrations.takeConsent(parameters);
      if (!taken)
        throw new CodedError(
          "FORBIDDEN",
          "This link was used already, or is too old; refresh the integration for another one.",
        );
      response
        .type("text/plain; charset=utf-8")
        .send("The application is connected. You can close this page.");
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      requestState(request).log.warn({ err: error }, "A consent could not be redeemed.");
      throw new CodedError("PROVIDER_ERROR", error.message, {
        provider: "oauth",
        retryable: error.retryable,
      });
    }
  };
}
