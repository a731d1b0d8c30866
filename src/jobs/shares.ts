/**
 * Shares the slots of a job runner: of jobs that may take long, one organization has at most two of five at a time, and
 * those that take minutes leave slots for others, so that nobody's code to sign in waits until exports are written. The database says with flags
 * of each job what it counts towards (app_private.job_flags); the job runner does not fetch jobs with a forbidden flag.
 */
import type { WorkerEvents } from "graphile-worker";

/** Slots of one organization, as with operations of the API. */
const SHARE = 0.4;
/** Slots that long jobs leave. */
const LEFT_BY_LONG = 2;

const ORGANIZATION = "organization:";
const LONG = "long";

type Flagged = { flags: Readonly<Record<string, true>> | null };

export class JobShares {
  readonly #slots: number;
  /** Running jobs by flag. */
  readonly #running = new Map<string, number>();
  /** Slots that ask for a job, and those that wait until they may. */
  #asking = 0;
  readonly #waiting: (() => void)[] = [];

  /** @param slots of the job runner */
  constructor(slots: number) {
    this.#slots = slots;
  }

  /** Follows the jobs of a job runner. */
  listen(events: WorkerEvents): void {
    events.on("job:start", ({ job }) => {
      this.#count(job, 1);
      this.#asked();
    });
    events.on("worker:getJob:empty", () => this.#asked());
    events.on("worker:getJob:error", () => this.#asked());
    events.on("job:complete", ({ job }) => {
      this.#count(job, -1);
      this.#wake();
    });
  }

  /** Waits until a slot may ask for a job. @returns the flags of jobs that it must not get */
  async forbidden(): Promise<string[]> {
    while (this.#asking >= this.#room()) await new Promise<void>((resolve) => this.#waiting.push(resolve));
    this.#asking += 1;
    return [...this.#running].filter(([flag, count]) => count >= this.#limit(flag)).map(([flag]) => flag);
  }

  /** How many slots may ask at the same time: they could all get jobs with the same flag. */
  #room(): number {
    let room = Math.min(this.#limit(ORGANIZATION), this.#limit(LONG));
    for (const [flag, count] of this.#running) {
      const left = this.#limit(flag) - count;
      if (left > 0) room = Math.min(room, left);
    }
    return room;
  }

  #limit(flag: string): number {
    if (flag === LONG) return Math.max(1, this.#slots - LEFT_BY_LONG);
    return flag.startsWith(ORGANIZATION) ? Math.max(1, Math.floor(this.#slots * SHARE)) : Infinity;
  }

  #count({ flags }: Flagged, by: 1 | -1): void {
    for (const flag of Object.keys(flags ?? {})) {
      const count = (this.#running.get(flag) ?? 0) + by;
      if (count > 0) this.#running.set(flag, count);
      else this.#running.delete(flag);
    }
  }

  #asked(): void {
    this.#asking -= 1;
    this.#wake();
  }

  #wake(): void {
    for (const resolve of this.#waiting.splice(0)) resolve();
  }
}
