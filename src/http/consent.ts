/**
 * /integrations/callback: OAuth redirect URI. The consent URL can be forwarded to somebody else, so GET only shows
 * which account is about to be connected, and POST connects it.
 */
import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { ConnectionFailed } from "../integrations/adapter.ts";
import type { Integrations } from "../integrations/integrations.ts";
import { button, paragraph, readerOf, sendPage } from "./htmlPage.ts";
import { requestState } from "./requestState.ts";

const found = <T>(value: T | undefined): T => {
  if (value === undefined)
    throw new CodedError(
      "FORBIDDEN",
      "This link has been used or has expired; refresh the integration to get a new one.",
    );
  return value;
};

/**
 * Handler of the redirect URI.
 * @throws CodedError FORBIDDEN for a used or expired link
 */
export function consentPage(integrations: Integrations): RequestHandler {
  return async (request, response) => {
    const reader = readerOf(request);
    const parameters = new URL(request.originalUrl, "https://localhost").searchParams;
    response.setHeader("Cache-Control", "no-store");
    response.setHeader("Referrer-Policy", "no-referrer");
    // A refusal connects nothing, so no confirmation is needed.
    if (request.method === "GET" && !parameters.has("error")) {
      const { integration, person, email, organization } = found(await integrations.waiting(parameters));
      const who = email ? `${person} (${email})` : person;
      return sendPage(
        response,
        reader,
        reader.text("Connect your account?"),
        organization === null
          ? paragraph(reader, `Your account will be connected with ${who}, as ${integration}.`, person)
          : paragraph(
              reader,
              `Your account will be connected with the organization ${organization}, as ${integration}. ${who} requested it.`,
              organization,
              person,
            ),
        paragraph(
          reader,
          "Continue only if you started this yourself: they can then use your account for what you consented to. Otherwise close this page; nothing will be connected.",
        ),
        button(reader, "Connect"),
      );
    }
    try {
      found(await integrations.takeConsent(parameters));
    } catch (error) {
      if (!(error instanceof ConnectionFailed)) throw error;
      requestState(request).log.warn(
        { event: "consent.failed", err: error },
        "Completing an OAuth consent failed.",
      );
      throw new CodedError("PROVIDER_ERROR", error.message, {
        provider: "oauth",
        retryable: error.retryable,
      });
    }
    sendPage(
      response,
      reader,
      reader.text("Connected"),
      paragraph(reader, "The application is connected. You can close this page."),
    );
  };
}
