import type { Random } from "./values.ts";

/** The ids that answers have told, by type, and whom they told it. */
export class Records {
  readonly #ids = new Map<string, Set<string>>();

  /** Notes every record of an answer in which `__typename` and `id` were asked for. */
  learn(answer: unknown, party: string): void {
    if (Array.isArray(answer)) answer.forEach((item) => this.learn(item, party));
    else if (answer && typeof answer === "object") {
      const { __typename: type, id } = answer as { __typename?: string; id?: unknown };
      if (type && typeof id === "string") this.add(type, id, party);
      Object.values(answer).forEach((value) => this.learn(value, party));
    }
  }

  /** Forgets all of them, those that are gone too. */
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
   * One of those that the party knows, now and then one of somebody else's; one of the latest more often than another, since what was
   * just made is what the next operation goes on with.
   */
  pick(type: string, party: string, random: Random): string | undefined {
    const own = random(8) > 0 ? this.#ids.get(`${type} ${party}`) : undefined;
    const ids = [...(own ?? this.#ids.get(type) ?? [])];
    const from = random(2) === 0 ? ids.slice(-20) : ids;
    return from[random(Math.max(1, from.length))];
  }
}
