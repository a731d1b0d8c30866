/** The queues of organizations and users whose computations wait: one each; the tenant that has computed least goes first. */
import type { TaskName } from "./tasks.ts";

/** Items for which a task is computed. */
export interface Job {
  tenant: Tenant;
  task: TaskName;
  /** JSON text. */
  shared: string;
  /** JSON texts. */
  items: readonly string[];
  /** Of the first items. */
  results: string[];
  /** Indexes of items for which a thread was terminated. */
  over: number[];
  resolve(results: string[]): void;
  reject(error: Error): void;
}

export interface Tenant {
  id: string;
  jobs: Job[];
  /** Whether a thread works for the tenant: at most one does. */
  isComputing: boolean;
  /** Milliseconds computed, minus what time has restored. */
  spent: number;
  /** When that was updated. */
  at: number;
}

/** The share that is restored to a tenant per millisecond. */
const refill = 0.5;
/** Above this number of tenants, those that neither wait nor have used time are forgotten. */
const mostIdle = 1_000;

export class Queues {
  readonly #tenants = new Map<string, Tenant>();

  get ids(): string[] {
    return [...this.#tenants.keys()];
  }

  /** Tenants with jobs that no thread works on. */
  get waiting(): Tenant[] {
    return [...this.#tenants.values()].filter(({ isComputing, jobs }) => !isComputing && jobs.length > 0);
  }

  /** Adds a job to the queue of its tenant. */
  add(id: string, job: Omit<Job, "tenant" | "results" | "over">): void {
    let tenant = this.#tenants.get(id);
    if (!tenant) {
      tenant = { id, jobs: [], isComputing: false, spent: 0, at: performance.now() };
      this.#tenants.set(id, tenant);
    }
    tenant.jobs.push({ ...job, tenant, results: [], over: [] });
  }

  /** The tenant whose turn it is. */
  next(): Tenant | undefined {
    let chosen: Tenant | undefined;
    for (const tenant of this.#tenants.values())
      if (!tenant.isComputing && tenant.jobs.length > 0)
        if (!chosen || this.#spentBy(chosen) > this.#spentBy(tenant)) chosen = tenant;
    return chosen;
  }

  /** Adds the computing time of a tenant. */
  spend(tenant: Tenant, ms: number): void {
    tenant.spent = this.#spentBy(tenant) + ms;
  }

  /** Milliseconds that a tenant has computed, minus what time has restored; undefined if unknown. */
  spent(id: string): number | undefined {
    const tenant = this.#tenants.get(id);
    return tenant && this.#spentBy(tenant);
  }

  /** Removes a finished job from the queue of its tenant, and settles its promise. */
  end(job: Job, tell: () => void): void {
    const { jobs } = job.tenant;
    jobs.splice(jobs.indexOf(job), 1);
    tell();
    if (this.#tenants.size > mostIdle)
      for (const tenant of this.#tenants.values())
        if (tenant.jobs.length === 0 && this.#spentBy(tenant) === 0) this.#tenants.delete(tenant.id);
  }

  /** Rejects all jobs. */
  rejectAll(error: Error): void {
    for (const { jobs } of this.#tenants.values())
      for (const job of [...jobs]) this.end(job, () => job.reject(error));
  }

  #spentBy(tenant: Tenant): number {
    const now = performance.now();
    tenant.spent = Math.max(0, tenant.spent - (now - tenant.at) * refill);
    tenant.at = now;
    return tenant.spent;
  }
}
