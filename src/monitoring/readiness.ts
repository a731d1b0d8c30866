/** Answers whether one part works; throwing counts as no. */
export type Check = () => boolean | Promise<boolean>;

export interface Report {
  ready: boolean;
  checks: Record<string, boolean>;
  /** What an operator has to look at although the process does its work; absent where there is nothing. */
  warnings?: string[];
}

/** Whether the process can do its work: each part adds its own check, and a shutdown turns all of it off. */
export class Readiness {
  #checks = new Map<string, Check>();
  #warnings = new Map<string, () => boolean>();
  #stopping = false;
  #looking: Promise<Record<string, boolean>> | undefined;

  add(name: string, check: Check): void {
    this.#checks.set(name, check);
  }

  /** Adds what is told beside the checks while it is so, and makes nothing unready. */
  warn(name: string, isSo: () => boolean): void {
    this.#warnings.set(name, isSo);
  }

  /** From now on not ready, so that load balancers send nobody here any more. */
  stop(): void {
    this.#stopping = true;
  }

  /**
   * Those who ask while it is looked get the same answer: the database is asked once, by however many.
   * @param withinMs after which a check that has not answered counts as failed.
   */
  async report(withinMs = 2000): Promise<Report> {
    this.#looking ??= this.#look(withinMs).finally(() => (this.#looking = undefined));
    const checks = await this.#looking;
    const warnings = [...this.#warnings].filter(([, isSo]) => isSo()).map(([name]) => name);
    return {
      ready: !this.#stopping && Object.values(checks).every(Boolean),
      checks,
      ...(warnings.length > 0 && { warnings }),
    };
  }

  async #look(withinMs: number): Promise<Record<string, boolean>> {
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
