/**
 * Names of the `event` field of log lines: stable, for searches and alerts, even if the message changes. Each description says when the line is
 * written and what to do. The table in docs/operating.md is generated from this one.
 */
export const logEvents = {
  "api_process.channel": "A message to an API process was lost because the process ended.",
  "api_process.ended": "An API process ended; another one starts with back-off.",
  "archive.unreadable":
    "An object of archived events is missing or damaged, or the file store does not respond; the content of its events is unavailable.",
  "compute.over_budget":
    "A computation of an organization exceeded its time or memory; its thread was replaced.",
  "consent.failed": "The provider refused a consent or did not respond.",
  "database.connection_lost": "A connection of a pool broke; the pool opens another one.",
  "database.line_down": "A permanent connection of a worker cannot be opened; retried with back-off.",
  "database.line_lost": "A permanent connection of a worker broke; it is reopened immediately.",
  "database.replica_back": "A read replica that was excluded receives queries again.",
  "database.replica_left_out":
    "A read replica lags, is unreachable or is not a standby of this database; queries go to the primary until it recovers.",
  "database.slow_statement": "A statement took longer than SLOW_STATEMENTS allows.",
  "database.starting":
    "The database server is starting or recovering; the process waits for it for up to two minutes.",
  "demo.loaded": "The demo organization was loaded into an empty database.",
  "draft.failed": "The draft provider refused a request or did not respond.",
  "embedded.adopted": "The password of the embedded database was lost; a new one was set.",
  "embedded.creating": "The embedded database is being created.",
  "embedded.ended": "The embedded database stopped unexpectedly; it is restarted on the same port.",
  "embedded.no_backup": "The archive has no backup of this database; run `npm run backup`.",
  "embedded.slow_start": "The embedded database is starting for longer than usual: it replays its log.",
  "embedded.start_failed":
    "The embedded database could not be restarted; retried for two minutes, or, if its disk is full, until there is space.",
  "embedded.started_again": "The embedded database is running again after it stopped unexpectedly.",
  "embedded.stopped_leftover": "A database left running by a killed process was stopped.",
  "export.progress_failed": "The progress of an export was not recorded; the export continues.",
  "files.release_failed": "Files of a refused upload were not deleted; the sweep deletes them.",
  "files.store_failed": "The file store refused a request or did not respond.",
  "graphql.compiled_mismatch":
    "A compiled query returned another result than its plan; the plan is used from now on. Report it.",
  "graphql.usage_lost":
    "The use of schema coordinates could not be recorded; their next use on another day is recorded again.",
  "graphql.failed": "An operation failed unexpectedly; the response has the same requestId.",
  "http.failed": "A request failed unexpectedly; the response has the same requestId.",
  "http.request": "A request was answered.",
  "integration.refresh_failed":
    "An integration could not be refreshed; an escalation ticket informs the organization.",
  "job.log": "A line of the job runner or of a task.",
  "job.set_aside":
    "A job during which a process died twice was set aside; it does not run until it is released.",
  "live.read_failed": "Events for streams could not be read; retried within a second.",
  "location.failed": "The location of a viewer could not be determined.",
  "log.dropped": "Lines of the log were lost because its reader was too slow; `lines` is their number.",
  "mail.failed": "An email could not be sent; the job retries.",
  "migration.baseline": "A database older than the migration baseline continues with the current migrations.",
  "migration.current": "migrations/current.sql was applied.",
  "migration.failed": "A migration failed and was rolled back.",
  "migration.job_runner": "The job runner reported a message while its schema was migrated.",
  "migration.lock_timeout": "A migration timed out waiting for a lock; it is retried.",
  "migration.owner": "The ownership of objects was transferred to the owner of the schema.",
  "migration.run": "A migration is running.",
  "monitoring.open": "Metrics and probes are served.",
  "monitoring.query_failed": "Queue metrics could not be read; the next scrape retries.",
  "monitoring.taken": "The address for metrics and probes is in use; set MONITORING.",
  "notifications.failed": "Reading events for notifications failed; retried with back-off.",
  "payments.reconcile_failed":
    "A record could not be reconciled with the payment processor; the next run retries.",
  "process.exception": "An uncaught exception; the process ends and the supervisor restarts it.",
  "process.stray_rejection": "An unhandled promise rejection; the process continues. Report it.",
  "sandbox.failed": "The payment sandbox could not deliver an event; it retries.",
  "schema.check_failed": "`npm run dev` could not check the schema.",
  "schema.drift": "The schema of the database differs from the source.",
  "schema.follow_failed": "`npm run dev` could not follow a change.",
  "schema.lock_timeout": "A schema change timed out waiting for a lock; it is retried.",
  "schema.reconciled": "Objects were created, replaced or dropped to match the source.",
  "secret.misplaced": "An encrypted value is in another column or row than it was encrypted for.",
  "secret.sealed": "Secrets were sealed with the current key.",
  "secret.unbound": "Secrets are not bound to a row yet; see UNBOUND_SECRETS.",
  "secret.unreadable": "A secret cannot be decrypted; check SECRET_KEYS.",
  "service.ready": "The service answers requests and runs jobs, depending on its mode.",
  "service.start_failed": "Startup failed; the message on standard error says why.",
  "service.stopped": "The service, or a part of it, has stopped.",
  "service.stopping": "The service is shutting down; see STOP_DELAY and STOP_TIMEOUT.",
  "stop.failed": "A component failed during shutdown.",
  "stop.timeout": "Shutdown exceeded STOP_TIMEOUT; remaining work was aborted.",
  "text_message.failed": "A text message could not be sent; the job retries, or sends an email instead.",
  "tls.reload_failed": "A renewed certificate could not be read; the previous one stays in use.",
  "tls.reloaded": "A renewed certificate is in use.",
  "webhook.delivery_failed": "A delivery failed unexpectedly; it is retried.",
  "webhook.dispatch_failed": "The dispatcher failed; retried with back-off.",
  "webhook.record_failed": "Results of deliveries could not be recorded in one batch, or at all; retried.",
  "worker.clock_set_back":
    "The clock of the database was set back; jobs that were queued before were rescheduled to now.",
  "worker.died": "Another worker died; its jobs were released.",
  "worker.ended": "The job runner ended; another one starts with back-off.",
  "worker.failed": "This process can no longer run jobs; it exits with code 69.",
  "worker.fetch_failed":
    "Due jobs could not be fetched although the database answered; the job runner is replaced.",
  "worker.jobs_lost": "Jobs were locked and never started here; they were released.",
  "worker.look_failed": "Looking for dead workers failed; retried.",
  "worker.poll_failed": "Looking for due jobs failed; retried.",
  "workflow.call_failed": "An external call of a workflow step failed unexpectedly; the step is retried.",
  "workflow.run_failed": "Running workflow steps failed; retried with back-off.",
  "workflow.trigger_failed": "Reading events for workflow triggers failed; retried with back-off.",
} as const satisfies Record<string, string>;

/** A name of a log event. */
export type LogEvent = keyof typeof logEvents;
