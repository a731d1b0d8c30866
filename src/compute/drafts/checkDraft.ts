/**
 * Whether a text states what facts support. It is read without trust, since whoever wrote it may have followed a note's words: what
 * cannot be matched with a fact is a violation, also where a person would understand it kindly. Names and numbers that a lead
 * gave of themselves support nothing.
 */
import type { Fact } from "../../providers/drafts/index.ts";
import { readAmounts } from "./amounts.ts";
import { readLinks } from "./links.ts";
import { escape, excerpt, Reading } from "./reading.ts";
import { readTimes } from "./times.ts";
import { readUnits } from "./units.ts";
import {
  courtesy,
  deferring,
  denial,
  forSale,
  gifts,
  greeting,
  guarded,
  handover,
  keptForYou,
  reductions,
  refusedWording,
  soon,
  titled,
} from "./wordingRules.ts";

export interface Verdict {
  /** Sentences for people; empty where the text stands. */
  violations: string[];
  /** Keys of the facts that it states. */
  used: Set<string>;
  /** Sentences that state something beside the facts, for whoever sends it to read twice. */
  loose: string[];
}

const limits = { subject: 200, body: 6000 };

/** Checks subject and body, as they would be sent. Done by the threads that compute (src/compute). */
export function checkDraft(
  { subject, body }: { subject: string; body: string },
  facts: readonly Fact[],
  quotes: readonly { text: string }[] = [],
): Verdict {
  const text = `${subject}\n${body}`;
  const reading = new Reading(text, facts);
  readForm(reading, subject, body);
  // PERF: whatever is longer is refused already, and reading takes its square.
  if (body.length > limits.body || subject.length > limits.subject)
    return { violations: [...reading.violations], used: reading.used, loose: [] };
  for (const problem of refusedWording(reading.rest)) reading.refuse(problem);
  const echo = repeated(text, quotes, facts);
  if (echo !== undefined) reading.refuse(`It repeats a note: ${excerpt(echo)}.`);
  // Each leaves to the next what it does not know.
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
  // Letters that cannot be seen, or look like others, hide what a text says.
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
/** So many words in a row are no accident. */
const run = 6;

/** Words of a note that a text repeats: what the team notes is not for the lead, and what a note says is no fact. */
function repeated(
  text: string,
  quotes: readonly { text: string }[],
  facts: readonly Fact[],
): string | undefined {
  const [said, known] = [text, facts.map(({ value }) => value).join("\n")].map(
    (part) => ` ${wordsOf(part).join(" ")} `,
  );
  for (const quote of quotes) {
    const words = wordsOf(quote.text);
    for (let at = 0; at + run <= words.length; at++) {
      const phrase = words.slice(at, at + run).join(" ");
      if (said!.includes(` ${phrase} `) && !known!.includes(` ${phrase} `)) return phrase;
    }
  }
  return undefined;
}

/** Names as they are, digits and all; not those that leads give of themselves. */
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
    // April and May are people too.
    for (const word of fact.value.split(/\s+/))
      if (/^\p{L}{3,}$/u.test(word)) reading.take(new RegExp(`(?<!\\p{L})${word}(?!\\p{L})`, "gu"), () => {});
  }
}

/** Whoever is called by name and title is no fact; but the one who is greeted. */
function readTitles(reading: Reading): void {
  for (const { 0: name, index } of reading.rest.matchAll(titled))
    if (!greeting.test(reading.sentenceAt(index))) reading.unsupported(name);
}

/** Money, contracts and building are spoken of with a fact, or to say who knows. */
function readGuarded(reading: Reading): void {
  // Where something was wrong already, a sentence without its fact is told of once.
  if (reading.violations.size > 0) return;
  for (const { 0: word, index } of reading.whole.matchAll(guarded)) {
    const sentence = reading.sentenceAt(index);
    if (
      !reading.isBacked(index) &&
      !reading.isSettled(index, word.length) &&
      !/\?\s*$/.test(sentence) &&
      !deferring.test(sentence)
    )
      reading.unsupported(sentence);
  }
}

/** Reductions and gifts are those of promotions. */
function readGifts(reading: Reading): void {
  const text = reading.whole.toLowerCase();
  const promotions = reading.facts
    .filter(({ subjectType }) => subjectType === "promotion")
    .map(({ statement }) => statement.toLowerCase());
  for (const [word] of text.matchAll(reductions)) if (promotions.length === 0) reading.unsupported(word);
  for (const [word] of text.matchAll(gifts))
    if (!promotions.some((statement) => statement.includes(word))) reading.unsupported(word);
}

/** What is not for sale is not offered, what is not reserved not kept, and nothing is ready soon. */
function readPromises(reading: Reading): void {
  const units = reading.facts.filter(({ kind }) => kind === "unit");
  for (const sentence of sentencesOf(reading.whole)) {
    const time = soon.exec(sentence);
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

/** Sentences of which nothing was matched with a fact. */
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
