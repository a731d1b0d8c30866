/** A draft that the service itself requests, such as a step of a workflow. */
import type { DraftProvider } from "../providers/drafts/index.ts";
import type { Compute } from "../compute/computePool.ts";
import { composeDraft, failedOutcome, type BegunDraft, type Outcome } from "./composeDraft.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

/** A pool or connection of plat_worker, with no transaction open. */
export interface Queries {
  query(text: string, values: unknown[]): Promise<{ rows: DatabaseValue[] }>;
}

export interface DraftOrder {
  leadId: string;
  purpose?: string | null;
  tone?: string | null;
  language?: string | null;
  instructions?: string | null;
  /** The principal, such as the creator of the workflow. */
  requestedBy?: string | null;
  /**
   * Identifies the cause, such as an execution and its step. The same cause gets the same draft, also after a crash.
   */
  request?: string | null;
}

/**
 * Generates a draft for a lead and stores it as a generation. Nothing is sent.
 * @param by the compute pool of the check, and the organization.
 * @returns the completed row: COMPLETED, or BLOCKED with warnings
 * @throws DraftFailed, once the row is FAILED; coded errors of the database, such as RATE_LIMITED and NOT_FOUND
 */
export async function draftLeadEmail(
  database: Queries,
  provider: DraftProvider,
  by: { compute: Compute; tenant: string },
  { leadId, purpose, tone, language, instructions, requestedBy, request }: DraftOrder,
): Promise<{ id: string; status: string; subject: string | null; body: string | null; warnings: string[] }> {
  const { rows } = await database.query(
    "select app_private.begin_lead_email_for($1, $2, $3, $4, $5, $6, $7) as begun",
    [
      leadId,
      purpose ?? null,
      tone ?? null,
      language ?? null,
      instructions ?? null,
      requestedBy ?? null,
      request ?? null,
    ],
  );
  const begun = rows[0].begun as BegunDraft;
  const complete = async (outcome: Outcome) => {
    const completed = await database.query(
      "select id, status, subject, body, warnings from app_private.complete_generation($1, $2)",
      [begun.id, JSON.stringify(outcome)],
    );
    return completed.rows[0];
  };
  if (begun.status !== "PENDING") {
    const known = await database.query(
      "select id, status, subject, body, warnings from app_private.generation_by_id($1)",
      [begun.id],
    );
    return known.rows[0];
  }
  let outcome: Outcome;
  try {
    outcome = await composeDraft(provider, begun, by);
  } catch (error) {
    await complete(failedOutcome(error));
    throw error;
  }
  return complete(outcome);
}
