import type { Random } from "./values.ts";

/** Ids from responses, by type and party. */
export class Records {
  readonly #ids = new Map<string, Set<string>>();

  /** Records each record of a response that selects `__typename` and `id`. */
  learn(answer: unknown, party: string): void {
    if (Array.isArray(answer)) answer.forEach((item) => this.learn(item, party));
    else if (answer && typeof answer === "object") {
      const { __typename: type, id } = answer as { __typename?: string; id?: unknown };
      if (type && typeof id === "string") this.add(type, id, party);
      Object.values(answer).forEach((value) => this.learn(value, party));
    }
  }

  /** Forgets all ids, including those of deleted records. */
  clear(): void {
    this.#ids.clear();
  }

  add(type: string, id: string, party: string): void {
    for (const key of [type, `${type} ${party}`]) {
      const known = this.#ids.get(key);
      if (known) known.add(id);
      else this.#ids.set(key, new Set([id]));
    }
  }

  /**
   * A random id that the party knows, sometimes one of another party. Recent ids are more likely, because new records
   * are what the next operation needs.
   */
  pick(type: string, party: string, random: Random): string | undefined {
    const own = random(8) > 0 ? this.#ids.get(`${type} ${party}`) : undefined;
    const ids = [...(own ?? this.#ids.get(type) ?? [])];
    const from = random(2) === 0 ? ids.slice(-20) : ids;
    return from[random(Math.max(1, from.length))];
  }
}
