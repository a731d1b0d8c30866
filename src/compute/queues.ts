/** The queues of the organizations and users whose computations wait: one each, and who has computed least goes first. */
import type { TaskName } from "./tasks.ts";

/** Some items that a task is computed for. */
export interface Job {
  tenant: Tenant;
  task: TaskName;
  /** JSON text. */
  shared: string;
  /** JSON texts. */
  items: readonly string[];
  /** Of the first items. */
  results: string[];
  /** Places of items that a thread was ended by. */
  over: number[];
  resolve(results: string[]): void;
  reject(error: Error): void;
}

export interface Tenant {
  id: string;
  jobs: Job[];
  /** Whether a thread works for it: no more than one does. */
  isComputing: boolean;
  /** Milliseconds computed, less what time has given back. */
  spent: number;
  /** When that was so. */
  at: number;
}

/** What a tenant gets back of its share as time passes. */
const refill = 0.5;
/** Above so many tenants, those are forgotten that neither wait nor have spent anything. */
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

  /** The tenant that has its turn. */
  next(): Tenant | undefined {
    let chosen: Tenant | undefined;
    for (const tenant of this.#tenants.values())
      if (!tenant.isComputing && tenant.jobs.length > 0)
        if (!chosen || this.#spentBy(chosen) > this.#spentBy(tenant)) chosen = tenant;
    return chosen;
  }

  /** Adds what was computed for a tenant. */
  spend(tenant: Tenant, ms: number): void {
    tenant.spent = this.#spentBy(tenant) + ms;
  }

  /** Milliseconds that a tenant has computed, less what time has given back; undefined where it is unknown. */
  spent(id: string): number | undefined {
    const tenant = this.#tenants.get(id);
    return tenant && this.#spentBy(tenant);
  }

  /** Takes a job that is over out of its queue, and says so to whoever waits for it. */
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
