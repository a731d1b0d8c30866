/**
 * Detects a job runner that can no longer fetch jobs. The runner reads its tasks once, before its first job, and
 * keeps the outcome: if the connection breaks then, each later fetch fails with that error until the runner is
 * replaced.
 */
import type { WorkerEvents } from "graphile-worker";
import { refusesChanges } from "../database/databaseErrors.ts";

/** Intervals in which all fetches failed, although jobs were due and the database answered. */
const INTERVALS = 2;

export class JobFetches {
  /** The last failure, if every fetch has failed since the last check. */
  #failure: Error | undefined;
  #intervals = 0;

  /** Follows the fetches of a job runner, after those of the previous one. */
  listen(events: WorkerEvents): void {
    this.reset();
    const succeeded = () => this.reset();
    events.on("job:start", succeeded);
    events.on("worker:getJob:empty", succeeded);
    events.on("worker:getJob:error", ({ error }) => (this.#failure = error as Error));
  }

  /**
   * Called after the database has answered that jobs are due.
   * @returns the failure that keeps the runner from fetching them, if it has to be replaced
   */
  check(): Error | undefined {
    const failure = this.#failure;
    this.#failure = undefined;
    // Waits for a database that is full or read-only, like everything else.
    if (!failure || refusesChanges(failure)) return undefined;
    this.#intervals += 1;
    return this.#intervals >= INTERVALS ? failure : undefined;
  }

  /** Called when fetches are not expected to fail, or failed for lack of a database. */
  reset(): void {
    this.#failure = undefined;
    this.#intervals = 0;
  }
}
