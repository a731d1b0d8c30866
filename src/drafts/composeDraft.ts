/** Generates a draft: the provider writes it, and the check accepts or blocks it. */
import type { Compute } from "../compute/computePool.ts";
import { DraftFailed, type DraftProvider, type DraftRequest } from "../providers/drafts/index.ts";

/** Returned by app_hidden.begin_lead_email and app_private.begin_lead_email_for. */
export interface BegunDraft extends DraftRequest {
  id: string;
  status: string;
  doNotContact: boolean;
  warnings: string[];
}

/** Accepted by app_private.complete_generation. */
export interface Outcome {
  status: "COMPLETED" | "BLOCKED" | "FAILED";
  subject?: string;
  body?: string;
  language?: string;
  facts?: { statement: string; subject_type: string; subject_id: string; field: string }[];
  warnings: string[];
  model?: string;
  error?: string;
}

const mostWarnings = 20;

/**
 * Generates and checks a draft, without holding a database connection.
 * @param by the compute pool of the check, and the tenant: the id of an organization or user.
 * @throws DraftFailed
 */
export async function composeDraft(
  provider: DraftProvider,
  begun: BegunDraft,
  { compute, tenant }: { compute: Compute; tenant: string },
): Promise<Outcome> {
  if (begun.doNotContact)
    return { status: "BLOCKED", warnings: ["The lead has asked not to be contacted.", ...begun.warnings] };
  const written = await provider.write(begun);
  const { subject, body } = written;
  const [checked] = await compute.run(tenant, "draft", null, [
    { draft: { subject, body }, facts: begun.facts, quotes: begun.quotes },
  ]);
  const { violations, loose, ...verdict } =
    "value" in checked!
      ? checked.value
      : { violations: ["The draft takes too long to check."], used: [], loose: [] };
  const used = new Set(verdict.used);
  const known = new Set(begun.facts.map(({ key }) => key));
  for (const key of written.factKeys)
    if (known.has(key)) used.add(key);
    else violations.push("The draft names a fact that there is not.");
  const { model, language } = written;
  const unbacked =
    violations.length === 0 ? loose.map((sentence) => `No fact says so: “${sentence.slice(0, 200)}”.`) : [];
  const warnings = [...new Set([...violations, ...begun.warnings, ...written.warnings, ...unbacked])].slice(
    0,
    mostWarnings,
  );
  if (violations.length > 0) return { status: "BLOCKED", warnings, model, language };
  return {
    status: "COMPLETED",
    subject,
    body,
    facts: begun.facts
      .filter(({ key }) => used.has(key))
      .map(({ statement, subjectType, subjectId, field }) => ({
        statement,
        subject_type: subjectType,
        subject_id: subjectId,
        field,
      })),
    warnings,
    model,
    language,
  };
}

/** The failure as stored in the row. */
export function failedOutcome(error: unknown): Outcome {
  return {
    status: "FAILED",
    error: error instanceof DraftFailed ? error.message : "The service failed while the draft was written.",
    warnings: [],
  };
}
