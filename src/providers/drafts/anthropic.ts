import Anthropic from "@anthropic-ai/sdk";
import type { RemoteOptions } from "../../base/providerOptions.ts";
import { boundedFetch, inTime } from "./boundedCall.ts";
import { maxTokens, message, readAnswer, schema, system } from "./prompt.ts";
import { DraftFailed, type DraftProvider } from "./draftProvider.ts";

/** The Messages API of Anthropic. */
export function createAnthropic({ apiKey, model, baseUrl, timeoutMs }: RemoteOptions): DraftProvider {
  const client = new Anthropic({
    apiKey: apiKey ?? null,
    // Ignores the environment; only the settings of the service apply.
    authToken: null,
    baseURL: baseUrl ?? "",
    maxRetries: 0,
    fetch: boundedFetch,
    logLevel: "off",
  });
  return {
    name: "ANTHROPIC",
    write: (request) =>
      inTime(timeoutMs, async (signal) => {
        const answer = await client.messages.create(
          {
            model,
            max_tokens: maxTokens,
            system,
            output_config: { format: { type: "json_schema", schema } },
            messages: [{ role: "user", content: message(request) }],
          },
          { signal },
        );
        if (answer.stop_reason === "max_tokens" || answer.stop_reason === "model_context_window_exceeded")
          throw new DraftFailed("The drafting service did not finish its answer.", true);
        if (answer.stop_reason === "refusal")
          throw new DraftFailed("The drafting service declines to write this.", false);
        const text = (answer.content ?? [])
          .map((block) => (block.type === "text" ? block.text : ""))
          .join("");
        return readAnswer(text, request.language, answer.model || model);
      }),
  };
}
