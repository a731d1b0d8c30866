/**
 * Whether facts support a text. The text is not trusted, because its author may have followed instructions in a note: anything that cannot
 * be matched with a fact is a violation, even if a person would understand it. Names and numbers that a lead gave about themselves support
 * nothing.
 */
import type { Fact } from "../../providers/drafts/index.ts";
import { readAmounts } from "./amounts.ts";
import { readLinks } from "./links.ts";
import { escape, excerpt, Reading } from "./reading.ts";
import { readTimes } from "./times.ts";
import { readUnits } from "./units.ts";
import {
  courtesy,
  referral,
  denial,
  forSale,
  giftWords,
  greeting,
  commercialTerms,
  handover,
  keptForYou,
  discountWords,
  refusedWording,
  relativeTime,
  titledName,
} from "./wordingRules.ts";

export interface Verdict {
  /** Sentences for people; empty if the text is accepted. */
  violations: string[];
  /** Keys of the facts that the text states. */
  used: Set<string>;
  /** Sentences that no fact supports, for the sender to review. */
  loose: string[];
}

const limits = { subject: 200, body: 6000 };

/** Checks subject and body as they would be sent. Runs in the threads of src/compute. */
export function checkDraft(
  { subject, body }: { subject: string; body: string },
  facts: readonly Fact[],
  quotes: readonly { text: string }[] = [],
): Verdict {
  const text = `${subject}\n${body}`;
  const reading = new Reading(text, facts);
  readForm(reading, subject, body);
  // PERF: longer texts are refused already, and parsing takes quadratic time.
  if (body.length > limits.body || subject.length > limits.subject)
    return { violations: [...reading.violations], used: reading.used, loose: [] };
  for (const problem of refusedWording(reading.rest)) reading.refuse(problem);
  const echo = repeated(text, quotes, facts);
  if (echo !== undefined) reading.refuse(`It repeats a note: ${excerpt(echo)}.`);
  // Each check leaves what it does not recognize to the next.
  readNames(reading);
  readLinks(reading);
  readUnits(reading);
  readTimes(reading);
  readAmounts(reading);
  readTitles(reading);
  readGuarded(reading);
  readGifts(reading);
  readPromises(reading);
  return { violations: [...reading.violations], used: reading.used, loose: looseSentences(reading) };
}

const sentencesOf = (text: string) => text.split(/(?<=[.!?])\s+|\n/);

function readForm(reading: Reading, subject: string, body: string): void {
  if (subject.length > limits.subject || /[\r\n]/.test(subject))
    reading.refuse("The subject is no line of a mail.");
  if (body.length > limits.body) reading.refuse("The text is too long for a mail.");
  const text = `${subject}\n${body}`;
  // Invisible letters, or letters that look like others, disguise the text.
  if (/[\p{Cf}\p{Co}\p{Cn}]|[^\P{Cc}\n\r\t]/u.test(text))
    reading.refuse("The text has characters that cannot be seen.");
  if (/[^\P{Nd}0-9]|[\p{Nl}\p{No}]/u.test(text)) reading.refuse("The text has unusual digits.");
  if (/<\/?[a-z!][^>]*>|\]\(|&#?\w+;/i.test(text)) reading.refuse("The text has markup.");
}

const wordsOf = (text: string) =>
  text
    .normalize("NFKC")
    .toLowerCase()
    .match(/[\p{L}\p{N}]+/gu) ?? [];
/** This many consecutive words are not a coincidence. */
const run = 6;

/** Words of a note that a text repeats: notes of the team are not for the lead, and their content is not a fact. */
function repeated(
  text: string,
  quotes: readonly { text: string }[],
  facts: readonly Fact[],
): string | undefined {
  const [stated, known] = [text, facts.map(({ value }) => value).join("\n")].map(
    (part) => ` ${wordsOf(part).join(" ")} `,
  );
  for (const quote of quotes) {
    const words = wordsOf(quote.text);
    for (let at = 0; at + run <= words.length; at++) {
      const phrase = words.slice(at, at + run).join(" ");
      if (stated!.includes(` ${phrase} `) && !known!.includes(` ${phrase} `)) return phrase;
    }
  }
  return undefined;
}

/** Names exactly as they are, with digits; not those that leads give themselves. */
function readNames(reading: Reading): void {
  for (const fact of reading.facts) {
    const parts =
      fact.kind === "place"
        ? [fact.value, ...fact.value.split(", ")]
        : fact.kind === "name"
          ? [fact.value]
          : [];
    for (const part of parts)
      if (part.length > 3 && /\p{L}/u.test(part))
        reading.take(
          new RegExp(`(?<![\\p{L}\\p{N}])${escape(part.normalize("NFKC"))}(?![\\p{L}\\p{N}])`, "giu"),
          () => void reading.used.add(fact.key),
        );
    if (fact.kind !== "person") continue;
    if (reading.rest.includes(fact.value)) reading.used.add(fact.key);
    // April and May are also names of people.
    for (const word of fact.value.split(/\s+/))
      if (/^\p{L}{3,}$/u.test(word)) reading.take(new RegExp(`(?<!\\p{L})${word}(?!\\p{L})`, "gu"), () => {});
  }
}

/** A person named with a title is not a fact, except for the person who is greeted. */
function readTitles(reading: Reading): void {
  for (const { 0: name, index } of reading.rest.matchAll(titledName))
    if (!greeting.test(reading.sentenceAt(index))) reading.unsupported(name);
}

/** Money, contracts and construction may only be mentioned with a fact, or to refer to somebody who knows. */
function readGuarded(reading: Reading): void {
  // A sentence that already has a violation is reported once.
  if (reading.violations.size > 0) return;
  for (const { 0: word, index } of reading.whole.matchAll(commercialTerms)) {
    const sentence = reading.sentenceAt(index);
    if (
      !reading.isSupported(index) &&
      !reading.isSettled(index, word.length) &&
      !/\?\s*$/.test(sentence) &&
      !referral.test(sentence)
    )
      reading.unsupported(sentence);
  }
}

/** Discounts and gifts must be those of promotions. */
function readGifts(reading: Reading): void {
  const text = reading.whole.toLowerCase();
  const promotions = reading.facts
    .filter(({ subjectType }) => subjectType === "promotion")
    .map(({ statement }) => statement.toLowerCase());
  for (const [word] of text.matchAll(discountWords)) if (promotions.length === 0) reading.unsupported(word);
  for (const [word] of text.matchAll(giftWords))
    if (!promotions.some((statement) => statement.includes(word))) reading.unsupported(word);
}

/**
 * Homes that are not for sale must not be offered. Homes that are not reserved must not be promised. A home must not
 * be announced as ready at a relative time, such as next spring.
 */
function readPromises(reading: Reading): void {
  const units = reading.facts.filter(({ kind }) => kind === "unit");
  for (const sentence of sentencesOf(reading.whole)) {
    const time = relativeTime.exec(sentence);
    if (time && handover.test(sentence)) reading.unsupported(time[0]);
    const kept = keptForYou.exec(sentence);
    if (kept && !units.some(({ reserved }) => reserved)) reading.unsupported(kept[0]);
    const offered = forSale.exec(sentence);
    if (!offered || denial.test(sentence)) continue;
    for (const { value, available } of units)
      if (
        !available &&
        new RegExp(`(?<![\\p{L}\\p{N}])${escape(value)}(?![\\p{L}\\p{N}])`, "iu").test(sentence)
      )
        reading.unsupported(`${value} … ${offered[0]}`);
  }
}

/** Sentences that no fact supports. */
const looseSentences = (reading: Reading): string[] =>
  sentencesOf(reading.whole)
    .map((sentence) => sentence.trim())
    .filter(
      (sentence) =>
        wordsOf(sentence).length > 3 &&
        !/\?\s*$/.test(sentence) &&
        !courtesy.test(sentence) &&
        !reading.isSettled(reading.whole.indexOf(sentence), sentence.length, true),
    );
