import { type Command, type Context, type Option, text, UsageError } from "../command.ts";
import { operation } from "../queries.ts";

interface Job {
  id: string;
  task: string;
  state: string;
  attempts: number;
  maxAttempts: number;
  runAt: string;
  lastError: string | null;
  requestId: string | null;
}

const JOBS = operation<{ jobs: Job[] }, object>(
  "query ($organizationId: ID, $task: String, $state: JobState, $most: Int) { jobs(organizationId: $organizationId, task: $task, state: $state, most: $most) { id task state attempts maxAttempts runAt lastError requestId } }",
);

const change = (name: string, type: string) =>
  operation<Record<string, { changed: number; more: boolean }>, { input: object }>(
    `mutation ($input: ${type}!) { ${name}(input: $input) { changed more } }`,
  );

const filterOptions = {
  task: { type: "string", value: "NAME", description: "Only jobs of this task." },
  state: {
    type: "string",
    value: "STATE",
    description: "DUE, SCHEDULED, RUNNING, FAILED, PAUSED or SET_ASIDE.",
  },
  all: { type: "boolean", description: "Of all organizations, for operators." },
} as const satisfies Record<string, Option>;

async function filterOf(context: Context): Promise<Record<string, unknown>> {
  const task = text(context, "task");
  const state = text(context, "state")?.toUpperCase();
  const organizationId = context.values["all"] ? undefined : await context.organization();
  return { ...(task && { task }), ...(state && { state }), ...(organizationId && { organizationId }) };
}

export const jobsList: Command = {
  name: "jobs list",
  summary: "List background jobs, failed ones among them",
  options: {
    ...filterOptions,
    first: { type: "string", value: "NUMBER", description: "So many at most; 50 if omitted." },
  },
  examples: ["plat jobs list --state FAILED"],
  async run(context) {
    const most = Number(text(context, "first") ?? 50);
    const { jobs } = await (await context.connect()).request(JOBS, { ...(await filterOf(context)), most });
    context.out.table(
      ["id", "task", "state", "attempts", "run at", "last error"],
      jobs.map((job) => [
        job.id,
        job.task,
        job.state,
        `${job.attempts}/${job.maxAttempts}`,
        job.runAt,
        (job.lastError ?? "").split("\n")[0]!.slice(0, 60),
      ]),
      jobs,
    );
  },
};

/** A command that changes the jobs selected by ids or by the filter. */
const changing = (name: string, field: string, input: string, summary: string): Command => ({
  name: `jobs ${name}`,
  summary,
  usage: "[ID...]",
  details:
    "Give ids, or a filter: then it is all jobs that match, of which the service changes a batch at a time.",
  options: filterOptions,
  async run(context) {
    const { positionals, out } = context;
    const filter = await filterOf(context);
    if (positionals.length === 0 && !filter["task"] && !filter["state"])
      throw new UsageError("Select the jobs by their ids, --task or --state.");
    const given = { ...filter, ...(positionals.length > 0 && { ids: positionals }) };
    const client = await context.connect();
    let changed = 0;
    for (let more = true; more && !context.signal.aborted;) {
      const answer = (await client.request(change(field, input), { input: given }))[field]!;
      changed += answer.changed;
      more = answer.more && answer.changed > 0;
    }
    if (out.json) out.data({ changed });
    else out.line(`${changed} changed.`);
  },
});

export const jobsRetry = changing("retry", "retryJobs", "RetryJobsInput", "Run jobs that failed again, now");
export const jobsDiscard = changing(
  "discard",
  "discardJobs",
  "DiscardJobsInput",
  "Discard jobs that are not to run any more",
);
