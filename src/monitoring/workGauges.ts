/** Gauges of pending work in all processes together, from app_private.work_numbers. */
import { Counter, Gauge, type Registry } from "prom-client";
import type { Logger } from "../base/log.ts";

/** A row of app_private.work_numbers. */
export interface WorkNumber {
  readonly metric: string;
  readonly label: string;
  readonly value: number | null;
}

/** By the name in the function's row: the description, and the name of the label. */
const gauges: Readonly<Record<string, { help: string; label?: string }>> = {
  jobs_due: { help: "Jobs whose time has come and that nobody runs yet, by task", label: "task" },
  jobs_scheduled: { help: "Jobs whose time has not come yet, retries included, by task", label: "task" },
  jobs_failed: { help: "Jobs that failed for the last time, by task", label: "task" },
  job_oldest_due_seconds: { help: "For how long the oldest job of a task has been due", label: "task" },
  jobs_set_aside: { help: "Jobs that are set aside because their process died twice" },
  workers: { help: "Workers that live, of all processes" },
  events_unread: { help: "Events that a reader of the streams has not read yet", label: "reader" },
  event_oldest_unread_seconds: {
    help: "For how long the oldest event that a reader has not read has been there",
    label: "reader",
  },
  webhook_deliveries: { help: "Deliveries of webhooks that are not over, by state", label: "state" },
  webhook_delivery_oldest_due_seconds: { help: "For how long the oldest delivery has been due" },
  workflow_executions_due: { help: "Executions of workflows with a step that is due" },
  workflow_execution_oldest_due_seconds: { help: "For how long the oldest step of a workflow has been due" },
  exports: { help: "Exports that are not over, by state", label: "state" },
  export_oldest_pending_seconds: { help: "For how long the oldest export has waited for its turn" },
  notification_mails_open: { help: "Mails of notifications that are being collected or are due" },
  notification_mail_oldest_due_seconds: {
    help: "For how long the oldest mail of notifications has been due",
  },
  deadlines_due: { help: "Deadlines that are past and have not expired yet" },
  deadline_oldest_due_seconds: { help: "For how long the oldest deadline has been over" },
  replication_lag_seconds: { help: "How far what a standby shows is behind", label: "standby" },
  replication_slot_retained_bytes: { help: "What a replication slot keeps of the log", label: "slot" },
  archive_last_success_timestamp_seconds: { help: "When a segment of the log was archived last" },
  archive_failing: { help: "Whether the last attempt to archive a segment of the log failed" },
  database_connections: { help: "Connections of all clients of the server" },
  database_connections_limit: { help: "Connections that the server takes at most" },
};
/** The same for counters of the database server. */
const counters: Readonly<Record<string, string>> = {
  archived_segments: "Segments of the log that were archived",
  archive_failures: "Failed attempts to archive a segment of the log",
};

/** Milliseconds for which numbers are cached. */
const FRESH_MS = 5_000;
/** Milliseconds that a scrape waits for them; later numbers appear in the next scrape. */
const WAIT_MS = 2_500;
/** Milliseconds after which numbers that could not be updated are no longer reported. */
const STALE_MS = 60_000;

/**
 * Registers the gauges.
 * @param read queries the database.
 * @returns a function that updates them before a scrape; it never throws.
 */
export function workGauges(
  registers: Registry[],
  read: () => Promise<WorkNumber[]>,
  log: Pick<Logger, "warn">,
): () => Promise<void> {
  const byName = new Map(
    Object.entries(gauges).map(([name, { help, label }]) => [
      name,
      new Gauge({ name: `plat_${name}`, help, labelNames: label ? [label] : [], registers }),
    ]),
  );
  const counted = new Map(
    Object.entries(counters).map(([name, help]) => [
      name,
      new Counter({ name: `plat_${name}_total`, help, registers }),
    ]),
  );
  const failures = new Counter({
    name: "plat_work_query_failures_total",
    help: "Times that the numbers of waiting work could not be read",
    registers,
  });
  const duration = new Gauge({
    name: "plat_work_query_duration_seconds",
    help: "How long it took to read the numbers of waiting work",
    registers,
  });
  const readAt = new Gauge({
    name: "plat_work_query_timestamp_seconds",
    help: "When the numbers of waiting work were read last",
    registers,
  });
  // A gauge without a label starts at 0, which would be wrong before the first query.
  const clear = () => {
    for (const [name, gauge] of byName) {
      gauge.reset();
      if (!gauges[name]!.label) gauge.remove();
    }
    for (const counter of counted.values()) {
      counter.reset();
      counter.remove();
    }
  };
  clear();
  let at = -Infinity;
  let renewing: Promise<void> | undefined;

  const renew = async () => {
    const began = performance.now();
    try {
      const numbers = await read();
      clear();
      for (const { metric, label, value } of numbers) {
        if (value === null) continue;
        counted.get(metric)?.inc(value);
        const name = gauges[metric]?.label;
        if (name) byName.get(metric)?.set({ [name]: label }, value);
        else byName.get(metric)?.set(value);
      }
      at = performance.now();
      duration.set((at - began) / 1000);
      readAt.set(Date.now() / 1000);
    } catch (error) {
      failures.inc();
      log.warn(
        { event: "monitoring.query_failed", err: error },
        "Reading the metrics of queued work failed; the next scrape retries.",
      );
    }
    if (performance.now() - at > STALE_MS) clear();
  };
  return async () => {
    if (performance.now() - at < FRESH_MS) return;
    renewing ??= renew().finally(() => (renewing = undefined));
    const late = Promise.withResolvers<void>();
    const timer = setTimeout(late.resolve, WAIT_MS);
    await Promise.race([renewing, late.promise]);
    clearTimeout(timer);
  };
}
