/** A text being parsed: which parts are already matched, and which facts it states. */
import type { Fact } from "../../providers/drafts/index.ts";
import { factualSubjects } from "./wordingRules.ts";

/** Escapes text for a regular expression. */
export const escape = (text: string): string => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
/** At most 60 characters of a text on one line, in quotation marks, for violations. */
export const excerpt = (text: string): string => `“${text.trim().replace(/\s+/g, " ").slice(0, 60)}”`;

/** Replaces text that is already matched, so that nothing reads it twice. */
const mark = "\u0001";

/** A unit that the text mentions, with its offset. */
interface Mention {
  at: number;
  unit: Fact;
}

export class Reading {
  readonly violations = new Set<string>();
  /** Keys of the facts that are stated. */
  readonly used = new Set<string>();
  readonly mentions: Mention[] = [];
  /** The text as written, and the part that is not matched yet; both have the same offsets. */
  readonly whole: string;
  rest: string;
  readonly facts: readonly Fact[];
  /** Offsets at which a fact supports an amount or a time. */
  #supported: number[] = [];
  #bounds: number[];

  constructor(text: string, facts: readonly Fact[]) {
    this.facts = facts;
    this.whole = this.rest = text.normalize("NFKC");
    this.#bounds = [...this.whole.matchAll(/(?<!\b[ap]\.m)[.!?](?=\s)|\n/gi)].map(({ index }) => index);
  }

  refuse(what: string): void {
    this.violations.add(what);
  }

  unsupported(text: string): void {
    this.refuse(`No fact supports ${excerpt(text)}.`);
  }

  /** Reads each match of the pattern and marks it as matched, unless the reader returns false. */
  take(pattern: RegExp, read: (match: RegExpMatchArray) => boolean | void): void {
    this.rest = this.rest.replace(pattern, (...groups) => {
      const at = groups.findIndex((group, index) => index > 0 && typeof group === "number");
      const match = groups.slice(0, at) as unknown as RegExpMatchArray;
      match.index = groups[at] as number;
      return read(match) === false ? match[0] : mark.repeat(match[0].length);
    });
  }

  /** Whether all of a range, or, with `part`, some of it, is already matched. */
  isSettled(at: number, length: number, part = false): boolean {
    const letters = [...this.rest.slice(at, at + length)];
    return part ? letters.includes(mark) : letters.every((letter) => letter === mark);
  }

  sentenceOf(at: number): number {
    return this.#bounds.filter((bound) => bound < at).length;
  }

  sentenceAt(at: number): string {
    const n = this.sentenceOf(at);
    return this.whole.slice((this.#bounds[n - 1] ?? -1) + 1, (this.#bounds[n] ?? this.whole.length) + 1);
  }

  /** Whether a range is in a question that states no fact. */
  isAsked(at: number, question: RegExp): boolean {
    const sentence = this.sentenceAt(at);
    return /\?\s*$/.test(sentence) && question.test(sentence) && !factualSubjects.test(sentence);
  }

  /** Whether a fact supports an amount or a time of the sentence. */
  isSupported(at: number): boolean {
    return this.#supported.some((place) => this.sentenceOf(place) === this.sentenceOf(at));
  }

  /**
   * Adds the facts about the units of the sentence, or about no unit, to the stated ones. A sentence that mentions no
   * unit continues with the units of the previous ones.
   */
  support(written: string, at: number, candidates: readonly Fact[]): boolean {
    const about = this.#unitsAt(at);
    const fitting =
      about.size === 0 ? candidates : candidates.filter(({ unit }) => unit === undefined || about.has(unit));
    if (fitting.some(({ kind }) => kind !== "count")) this.#supported.push(at);
    for (const { key } of fitting) this.used.add(key);
    if (fitting.length === 0)
      this.unsupported(candidates.length > 0 ? `${written} of ${[...about].join(", ")}` : written);
    return true;
  }

  #unitsAt(at: number): Set<string> {
    let best = -1;
    for (const mention of this.mentions) {
      const sentence = this.sentenceOf(mention.at);
      if (sentence <= this.sentenceOf(at) && sentence > best) best = sentence;
    }
    return new Set(
      this.mentions.filter((mention) => this.sentenceOf(mention.at) === best).map(({ unit }) => unit.value),
    );
  }
}
