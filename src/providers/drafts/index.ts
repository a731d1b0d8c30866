import { createAnthropic } from "./anthropic.ts";
import type { RemoteOptions } from "./call.ts";
import { createEmbedded } from "./embedded.ts";
import { createOpenAi } from "./openai.ts";
import type { DraftProvider } from "./provider.ts";

export {
  DraftFailed,
  type DraftProvider,
  type DraftRequest,
  type Fact,
  type WrittenDraft,
} from "./provider.ts";

export interface DraftOptions extends RemoteOptions {
  provider: "openai" | "anthropic";
}

/** Who writes drafts; without options the service composes them by itself, from facts alone and without any network. */
export function createDraftProvider(options?: DraftOptions): DraftProvider {
  if (!options) return createEmbedded();
  return options.provider === "openai" ? createOpenAi(options) : createAnthropic(options);
}
