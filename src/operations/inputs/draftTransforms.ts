/**
 * Work of suggestLeadEmail before its statement: the row is committed as PENDING, the provider is called without
 * holding a database connection, and the text is checked. The statement completes the row with the result.
 */
import { createHash } from "node:crypto";
import { setTimeout as sleep } from "node:timers/promises";
import type { Compute } from "../../compute/computePool.ts";
import { CodedError } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import { idempotencyIn } from "../idempotency.ts";
import { DraftFailed, type DraftProvider } from "../../providers/drafts/index.ts";
import { composeDraft, failedOutcome, type BegunDraft, type Outcome } from "../../drafts/composeDraft.ts";
import type { DatabaseValue } from "../../database/databaseValue.ts";

/** Implements the tag. */
export function draftTransforms(
  provider: DraftProvider,
  compute: Compute,
  log: Logger,
): Record<"composeLeadEmail", ArgumentTransform> {
  return {
    async composeLeadEmail(_given, { input, context }) {
      const ask = async <T>(text: string, values: unknown[]): Promise<T> => {
        const { withPgClient, pgSettings } = context;
        const { rows } = await withPgClient(pgSettings, (client: DatabaseValue) =>
          client.query({ text, values }),
        );
        return rows[0].result as T;
      };
      const repeat = idempotencyIn(input, context);
      const { leadId, purpose, tone, language, instructions } = input;
      const begun = await ask<BegunDraft & { known?: boolean }>(
        "select app_hidden.begin_lead_email($1, $2, $3, $4, $5, $6) as result",
        [
          leadId,
          purpose ?? null,
          tone ?? null,
          language ?? null,
          instructions ?? null,
          repeat && { ...repeat, request: requestOf(repeat, input) },
        ],
      );
      const { id } = begun;
      if (begun.known) {
        await completed(
          () => ask<string>("select app_hidden.generation_status($1) as result", [id]),
          begun.status,
        );
        return { id };
      }
      let outcome: Outcome;
      try {
        outcome = await composeDraft(provider, begun, { compute, tenant: context.claims.userId! });
      } catch (error) {
        const failed = failedOutcome(error);
        await ask("select app_private.fail_lead_email($1, $2) as result", [id, failed.error]);
        if (!(error instanceof DraftFailed)) throw error;
        // Not the provider's message, which may repeat its input.
        const { status } = (error.cause ?? {}) as { status?: number };
        log.warn({ event: "draft.failed", provider: provider.name, status, generation: id }, error.message);
        throw new CodedError(
          "PROVIDER_ERROR",
          error.message,
          {
            provider: provider.name,
            retryable: error.retryable,
            generationId: id,
            ...(error.retryAfterSeconds !== undefined && { retryAfterSeconds: error.retryAfterSeconds }),
          },
          { cause: error },
        );
      }
      return { id, ...outcome };
    },
  };
}

/** Identical for the same field of the same request; reveals nothing to its reader. */
function requestOf({ key, body }: { key: string; body: string }, input: Record<string, unknown>): string {
  return createHash("sha256")
    .update(JSON.stringify([key, body, input]))
    .digest("hex");
}

/** The second of two identical requests waits for the first, which writes the draft. */
async function completed(status: () => Promise<string>, first: string): Promise<void> {
  const until = performance.now() + 60_000;
  for (let now = first; now === "PENDING"; now = await status()) {
    if (performance.now() > until)
      throw new CodedError("PROVIDER_ERROR", "The draft is still being generated; try again in a moment.", {
        provider: "AI",
        retryable: true,
      });
    await sleep(100);
  }
}
