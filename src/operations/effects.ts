/** What the answer of a dry run lists: `extensions.effects`. */
import type { DryEvent, DryRunFindings } from "../database/dryRun.ts";

/** Evaluates conditions of an organization's workflows: whether each holds. */
export type EvaluateConditions = (
  organizationId: string,
  items: { condition: unknown; data: object | undefined }[],
) => Promise<boolean[]>;

/** A unit or lot that would become another's, or free. */
interface ClaimEffect {
  subjectType: string;
  subjectId: string;
  from: unknown;
  to: unknown;
}

/** An amount that would be due, given back, or other than before. */
interface MoneyEffect {
  event: string;
  subjectId: string;
  amount: unknown;
  before?: unknown;
}

export interface Effects {
  /** In the order of the stream, as `events` would show them. */
  events: DryEvent[];
  /** How many there are beside. */
  moreEvents: number;
  claims: ClaimEffect[];
  money: MoneyEffect[];
  mails: { task: string; id?: string; runAt?: string }[];
  jobs: { task: string; id?: string; runAt?: string }[];
  notifications: { kind: string; members: number }[];
  webhooks: { id: string; url: string; events: string[] }[];
  workflows: { id: string; name: string; event: string; subjectId: string }[];
}

/** Tasks that write to somebody; a test compares them with what the tasks import. */
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

/** Where the amount of a record stands that moves money, or makes it due. */
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

/** Workflows without those whose conditions do not hold; conditions and their data stay here. */
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

/** The list of what was found; of what is committed only what its events tell, since all else follows by itself. */
export async function effectsOf(
  findings: DryRunFindings | Pick<DryRunFindings, "events" | "moreEvents">,
  evaluate: EvaluateConditions | undefined,
): Promise<Effects | Pick<Effects, "events" | "moreEvents" | "claims" | "money">> {
  const { events, moreEvents } = findings;
  const told = { events, moreEvents, claims: events.flatMap(claimOf), money: events.flatMap(moneyOf) };
  if (!("jobs" in findings)) return told;
  const { jobs, notifications, webhooks, workflows } = findings;
  return {
    ...told,
    mails: jobs.filter(({ task }) => writingTasks.has(task)),
    jobs: jobs.filter(({ task }) => !writingTasks.has(task)),
    notifications,
    webhooks,
    workflows: await startsOf(workflows, evaluate),
  };
}
