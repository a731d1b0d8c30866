/** Checks whether one part works; throwing means it does not. */
export type Check = () => boolean | Promise<boolean>;

export interface Report {
  ready: boolean;
  checks: Record<string, boolean>;
  /** A warning for the operator although the process is ready; absent if there is none. */
  warnings?: string[];
}

/** Whether the process is ready: each part adds a check, and a shutdown makes all of it unready. */
export class Readiness {
  #checks = new Map<string, Check>();
  #warnings = new Map<string, () => boolean>();
  #stopping = false;
  #checking: Promise<Record<string, boolean>> | undefined;

  add(name: string, check: Check): void {
    this.#checks.set(name, check);
  }

  /** Adds a warning that is reported with the checks and does not make the process unready. */
  warn(name: string, isSo: () => boolean): void {
    this.#warnings.set(name, isSo);
  }

  /** Not ready from now on, so that load balancers send no more requests. */
  stop(): void {
    this.#stopping = true;
  }

  /**
   * Concurrent calls share one check, so that the database is queried once.
   * @param withinMs milliseconds after which a pending check counts as failed.
   */
  async report(withinMs = 2000): Promise<Report> {
    this.#checking ??= this.#check(withinMs).finally(() => (this.#checking = undefined));
    const checks = await this.#checking;
    const warnings = [...this.#warnings].filter(([, isSo]) => isSo()).map(([name]) => name);
    return {
      ready: !this.#stopping && Object.values(checks).every(Boolean),
      checks,
      ...(warnings.length > 0 && { warnings }),
    };
  }

  async #check(withinMs: number): Promise<Record<string, boolean>> {
    const entries = [...this.#checks].map(
      async ([name, check]) => [name, await passes(check, withinMs)] as const,
    );
    return Object.fromEntries(await Promise.all(entries));
  }
}

async function passes(check: Check, withinMs: number): Promise<boolean> {
  const late = Promise.withResolvers<boolean>();
  const timer = setTimeout(late.resolve, withinMs, false);
  try {
    return await Promise.race([check(), late.promise]);
  } catch {
    return false;
  } finally {
    clearTimeout(timer);
  }
}
