/** Checks of background work, and of the invariants of deals. */
import { brokenInvariants } from "./invariants.ts";
import { problem, warning, type HealthCheck } from "./finding.ts";

const setAside: HealthCheck = {
  name: "Jobs that end their process",
  async check({ client }) {
    const { rows } = await client.query<{ ticket: string; task: string }>(
      "select id::text as ticket, task from app_private.job_deaths where set_aside_at is not null order by set_aside_at",
    );
    return rows.map(({ ticket, task }) =>
      problem(
        `A job of the task ${task} is set aside, since its process died twice during it.`,
        `Mend the cause, then \`select app_private.release_job('${ticket}')\`.`,
      ),
    );
  },
};

const jobs: HealthCheck = {
  name: "Jobs",
  async check({ client }) {
    const failed = await client.query<{ task: string; jobs: number; error: string }>(
      `select task_identifier as task, count(*)::int as jobs, left(max(last_error), 120) as error from graphile_worker.jobs
       where attempts >= max_attempts and locked_at is null group by 1 order by 2 desc`,
    );
    const late = await client.query<{ task: string; jobs: number; minutes: number }>(
      `select task_identifier as task, count(*)::int as jobs, (extract(epoch from max(now() - run_at)) / 60)::int as minutes
       from graphile_worker.jobs where locked_at is null and attempts < max_attempts and run_at < now() - interval '5 minutes'
       group by 1 order by 3 desc`,
    );
    const long = await client.query<{ task: string; hours: number }>(
      `select task_identifier as task, (extract(epoch from max(now() - locked_at)) / 3600)::int as hours
       from graphile_worker.jobs where locked_at < now() - interval '1 hour' group by 1 order by 2 desc`,
    );
    return [
      ...failed.rows.map(({ task, jobs: count, error }) =>
        problem(
          `${count} jobs of the task ${task} failed for the last time: ${error}`,
          `Mend the cause, then retry or discard them on the page /jobs: task ${task}, state FAILED.`,
        ),
      ),
      ...late.rows.map(({ task, jobs: count, minutes }) =>
        problem(
          `${count} jobs of the task ${task} wait, the longest for ${minutes} minutes.`,
          "See that a worker runs (`/readyz`); more WORKER_CONCURRENCY or processes with --worker-only take more at a time.",
        ),
      ),
      ...long.rows.map(({ task, hours }) =>
        warning(
          `A job of the task ${task} has run for ${hours} hours.`,
          "Look for it in the log by its task, and at what it waits for.",
        ),
      ),
    ];
  },
};

const deliveries: HealthCheck = {
  name: "Webhooks",
  async check({ client }) {
    const { rows } = await client.query<{ deliveries: number; minutes: number }>(
      `select count(*)::int as deliveries, (extract(epoch from max(now() - next_attempt_at)) / 60)::int as minutes
       from app_public.webhook_deliveries where status = 'PENDING' and next_attempt_at < now() - interval '5 minutes'`,
    );
    const { deliveries: count, minutes } = rows[0]!;
    if (count === 0) return [];
    return [
      problem(
        `${count} deliveries of webhooks are overdue, the longest for ${minutes} minutes.`,
        "See that a worker runs (`/readyz`) and what its log says of webhooks.",
      ),
    ];
  },
};

const deadlines: HealthCheck = {
  name: "Deadlines",
  async check({ client }) {
    const { rows } = await client.query<{ kind: string; records: number; minutes: number }>(
      `select kind, count(*)::int as records, (extract(epoch from max(now() - due_at)) / 60)::int as minutes
       from app_hidden.deadlines where due_at < now() - interval '5 minutes' group by 1 order by 1`,
    );
    return rows.map(({ kind, records, minutes }) =>
      problem(
        `${records} deadlines of the kind ${kind} are over and nothing has come of it, the longest for ${minutes} minutes.`,
        "See that a worker runs (`/readyz`); its log says why one fails.",
      ),
    );
  },
};

const rules: HealthCheck = {
  name: "Rules of deals",
  async check({ client }) {
    const found = Object.entries(await brokenInvariants(client, 5));
    return found.map(([rule, rows]) =>
      problem(
        `Not so any more: ${rule}. For example ${JSON.stringify(rows[0])}.`,
        "Look at the events of that record for what happened, and report it: no operation should be able to do this.",
      ),
    );
  },
};

/** The checks of background work and data. */
export const workChecks: readonly HealthCheck[] = [jobs, setAside, deliveries, deadlines, rules];
