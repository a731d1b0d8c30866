/** Contents of `extensions.effects` in the response of a dry run. */
import type { DryEvent, DryRunFindings } from "../database/dryRunTransaction.ts";

/** Evaluates conditions of an organization's workflows. */
export type EvaluateConditions = (
  organizationId: string,
  items: { condition: unknown; data: object | undefined }[],
) => Promise<boolean[]>;

/** A unit or lot whose claim would change. */
interface ClaimEffect {
  subjectType: string;
  subjectId: string;
  from: unknown;
  to: unknown;
}

/** An amount that would become due, be refunded or change. */
interface MoneyEffect {
  event: string;
  subjectId: string;
  amount: unknown;
  before?: unknown;
}

export interface Effects {
  /** In stream order, as in `events`. */
  events: DryEvent[];
  /** Number of further events. */
  moreEvents: number;
  claims: ClaimEffect[];
  money: MoneyEffect[];
  mails: { task: string; id?: string; runAt?: string }[];
  jobs: { task: string; id?: string; runAt?: string }[];
  notifications: { kind: string; members: number }[];
  webhooks: { id: string; url: string; events: string[] }[];
  workflows: { id: string; name: string; event: string; subjectId: string }[];
}

/** Tasks that send messages; a test compares them with the imports of the tasks. */
export const writingTasks: ReadonlySet<string> = new Set([
  "account__changed",
  "affiliation__changed",
  "agreement__completed",
  "agreement__ended",
  "agreement_signer__invited",
  "buyer__cancelled",
  "buyer_invite__created",
  "consent__requested",
  "generation__sent",
  "organization__contacted",
  "organization_deletions__remind",
  "organization_invite__created",
  "principal__ended",
  "project_organization_invite__created",
  "second_factor__required",
  "second_factors__remind",
  "service__contacted",
  "signing_code__requested",
  "user__email_change_requested",
  "user__otp_requested",
  "user__verification_requested",
  "webhook__disabled",
  "workflow_mail__send",
]);

/** Column with the amount of a record that moves money or makes it due. */
const amounts: Readonly<Record<string, string>> = {
  deposit: "amount",
  charge: "amount",
  refund: "amount",
  offer: "amount",
  reservation: "price",
  buyer: "price",
};

function moneyOf({ name, subjectType, subjectId, changes, data }: DryEvent): MoneyEffect[] {
  const field = amounts[subjectType];
  const amount = field && data[field];
  if (field === undefined || amount == null) return [];
  const change = changes?.[field] ?? changes?.["amountRefunded"];
  if (changes && !change && changes["status"] === undefined) return [];
  return [{ event: name, subjectId, amount, ...(changes?.[field] && { before: changes[field][0] }) }];
}

function claimOf({ subjectType, subjectId, changes }: DryEvent): ClaimEffect[] {
  const change = subjectType === "unit" || subjectType === "lot" ? changes?.["status"] : undefined;
  return change ? [{ subjectType, subjectId, from: change[0], to: change[1] }] : [];
}

/** Drops workflows whose conditions are not met; conditions and their data are not returned. */
async function startsOf(
  candidates: DryRunFindings["workflows"],
  evaluate: EvaluateConditions | undefined,
): Promise<Effects["workflows"]> {
  const starts: Effects["workflows"] = [];
  for (const [organizationId, ofOne] of Map.groupBy(candidates, (one) => one.organizationId)) {
    const open = ofOne.filter(({ condition }) => condition !== undefined);
    const holds = evaluate
      ? await evaluate(
          organizationId,
          open.map(({ condition, data }) => ({ condition, data })),
        )
      : [];
    const dropped = new Set(open.filter((_, place) => holds[place] === false));
    for (const one of ofOne) {
      const { workflowId: id, name, event, subjectId } = one;
      if (!dropped.has(one)) starts.push({ id, name, event, subjectId });
    }
  }
  return starts;
}

/** List of effects; for committed changes only their events, since everything else follows by itself. */
export async function effectsOf(
  findings: DryRunFindings | Pick<DryRunFindings, "events" | "moreEvents">,
  evaluate: EvaluateConditions | undefined,
): Promise<Effects | Pick<Effects, "events" | "moreEvents" | "claims" | "money">> {
  const { events, moreEvents } = findings;
  const immediate = { events, moreEvents, claims: events.flatMap(claimOf), money: events.flatMap(moneyOf) };
  if (!("jobs" in findings)) return immediate;
  const { jobs, notifications, webhooks, workflows } = findings;
  return {
    ...immediate,
    mails: jobs.filter(({ task }) => writingTasks.has(task)),
    jobs: jobs.filter(({ task }) => !writingTasks.has(task)),
    notifications,
    webhooks,
    workflows: await startsOf(workflows, evaluate),
  };
}
