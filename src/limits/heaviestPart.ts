/** The total of a selection, and the field below it that accounts for most of it. */
export interface Weighed {
  readonly total: number;
  /** Dotted names of fields; empty if no single one is dominant. */
  readonly part: readonly string[];
}

/** Adds up the figures of the fields of a selection. */
export class Weighing {
  #total = 0;
  #most = 0;
  #part: readonly string[] = [];

  add(total: number, name?: string, part: readonly string[] = []): void {
    this.#total += total;
    if (name === undefined || total <= this.#most) return;
    this.#most = total;
    this.#part = [name, ...part];
  }

  get sum(): Weighed {
    return { total: this.#total, part: this.#most * 2 > this.#total ? this.#part : [] };
  }
}
