/** Metrics of the background work of this process: jobs, webhook deliveries, mails. */
import { type Job, type WorkerEvents } from "graphile-worker";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import { MailRefused, type MailProvider } from "../providers/mail/index.ts";

/** Seconds, up to the duration of an export. */
const buckets = [0.005, 0.025, 0.1, 0.25, 1, 2.5, 10, 30, 120, 600];

export interface JobMetrics {
  /** Counts what a job runner does. */
  listen(events: WorkerEvents): void;
  /** A delivery attempt has ended; `status` is that of the response, undefined if there was none. */
  delivered(status: number | undefined, seconds: number): void;
  /** The provider, whose mails are counted. */
  countMails(provider: MailProvider): MailProvider;
}

/** Registers the metrics. Durations are in seconds, as usual in Prometheus. */
export function jobMetrics(registers: Registry[]): JobMetrics {
  const running = new Gauge({
    name: "plat_jobs_running",
    help: "Jobs that this process runs, by task",
    labelNames: ["task"],
    registers,
  });
  const durations = new Histogram({
    name: "plat_job_duration_seconds",
    help: "How long jobs took, by task and outcome: succeeded, failed, or failed for the last time",
    labelNames: ["task", "outcome"],
    buckets,
    registers,
  });
  const waits = new Histogram({
    name: "plat_job_wait_seconds",
    help: "From the time for which a job was wanted to its start, by task",
    labelNames: ["task"],
    buckets,
    registers,
  });
  const deliveries = new Histogram({
    name: "plat_webhook_delivery_duration_seconds",
    help: "How long attempts at deliveries of webhooks took, by class of the answer's status",
    labelNames: ["answer"],
    buckets,
    registers,
  });
  const mails = new Counter({
    name: "plat_mails_total",
    help: "Mails by outcome: sent, refused for good, or deferred to another attempt",
    labelNames: ["outcome"],
    registers,
  });
  for (const outcome of ["sent", "refused", "deferred"]) mails.inc({ outcome }, 0);
  for (const answer of ["2xx", "none"]) deliveries.zero({ answer });
  return {
    listen(events) {
      const begun = new Map<Job, number>();
      events.on("job:start", ({ job }) => {
        begun.set(job, performance.now());
        running.inc({ task: job.task_identifier });
        waits.observe({ task: job.task_identifier }, Math.max(0, Date.now() - job.run_at.getTime()) / 1000);
      });
      const ended = (job: Job, outcome: string) => {
        const at = begun.get(job);
        if (at === undefined) return;
        begun.delete(job);
        running.dec({ task: job.task_identifier });
        durations.observe({ task: job.task_identifier, outcome }, (performance.now() - at) / 1000);
      };
      events.on("job:success", ({ job }) => ended(job, "succeeded"));
      events.on("job:error", ({ job }) =>
        ended(job, job.attempts >= job.max_attempts ? "failed_finally" : "failed"),
      );
    },
    delivered(status, seconds) {
      deliveries.observe(
        { answer: status === undefined ? "none" : `${Math.floor(status / 100)}xx` },
        seconds,
      );
    },
    countMails: (provider) => ({
      async send(message) {
        try {
          const sent = await provider.send(message);
          mails.inc({ outcome: "sent" });
          return sent;
        } catch (error) {
          mails.inc({ outcome: error instanceof MailRefused ? "refused" : "deferred" });
          throw error;
        }
      },
      close: () => provider.close(),
    }),
  };
}
