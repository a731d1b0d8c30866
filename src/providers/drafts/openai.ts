import OpenAI from "openai";
import type { RemoteOptions } from "../../base/providerOptions.ts";
import { boundedFetch, inTime } from "./boundedCall.ts";
import { maxTokens, message, readAnswer, schema, system } from "./prompt.ts";
import { DraftFailed, type DraftProvider } from "./draftProvider.ts";

/** Any endpoint with the Chat Completions API of OpenAI. */
export function createOpenAi({ apiKey, model, baseUrl, timeoutMs }: RemoteOptions): DraftProvider {
  const client = new OpenAI({
    apiKey: apiKey ?? "none",
    baseURL: baseUrl ?? "",
    // Ignores the environment; only the settings of the service apply.
    organization: null,
    project: null,
    maxRetries: 0,
    fetch: boundedFetch,
    logLevel: "off",
  });
  return {
    name: "OPENAI",
    write: (request) =>
      inTime(timeoutMs, async (signal) => {
        const completion = await client.chat.completions.create(
          {
            model,
            max_completion_tokens: maxTokens,
            store: false,
            response_format: { type: "json_schema", json_schema: { name: "draft", strict: true, schema } },
            messages: [
              { role: "system", content: system },
              { role: "user", content: message(request) },
            ],
          },
          { signal },
        );
        const choice = completion.choices?.[0];
        if (choice?.finish_reason === "length")
          throw new DraftFailed("The drafting service did not finish its answer.", true);
        if (choice?.message?.refusal || choice?.finish_reason === "content_filter")
          throw new DraftFailed("The drafting service declines to write this.", false);
        return readAnswer(choice?.message?.content, request.language, completion.model || model);
      }),
  };
}
