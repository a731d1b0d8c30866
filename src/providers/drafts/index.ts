import { keepSuccess } from "../../base/keepSuccess.ts";
import type { DraftOptions } from "../../base/providerOptions.ts";
import { createEmbedded } from "./embeddedDrafts.ts";
import type { DraftProvider } from "./draftProvider.ts";

export {
  DraftFailed,
  type DraftProvider,
  type DraftRequest,
  type Fact,
  type WrittenDraft,
} from "./draftProvider.ts";

/** The author of drafts; without options, the embedded composer, which only uses facts and no network. */
export function createDraftProvider(options?: DraftOptions): DraftProvider {
  if (!options) return createEmbedded();
  const loaded = keepSuccess(() => load(options));
  return {
    name: options.provider === "openai" ? "OPENAI" : "ANTHROPIC",
    write: async (request) => await (await loaded()).write(request),
  };
}

/** PERF: their clients are large, and most services use neither. */
async function load(options: DraftOptions): Promise<DraftProvider> {
  if (options.provider === "openai") return (await import("./openai.ts")).createOpenAi(options);
  return (await import("./anthropic.ts")).createAnthropic(options);
}
