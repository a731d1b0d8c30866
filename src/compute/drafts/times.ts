/** Dates and times of a draft. */
import type { Fact } from "../../providers/drafts/index.ts";
import { months, numberWords, weekdays } from "./numberWords.ts";
import { escape, type Reading } from "./reading.ts";
import { meetingQuestion, conversation, travel } from "./wordingRules.ts";

const monthNames = [...months.keys()]
  .sort((a, b) => b.length - a.length)
  .map(escape)
  .join("|");

interface Moment {
  fact: Fact;
  year: number;
  month: number;
  day: number | undefined;
  minutes: number | undefined;
}

function momentOf(fact: Fact): Moment | undefined {
  const match = /^(\d{4})-(\d{2})(?:-(\d{2})T(\d{2}):(\d{2}))?$/.exec(fact.value);
  if (!match || (fact.kind !== "time" && fact.kind !== "month")) return undefined;
  const [year, month, day, hour, minute] = match.slice(1).map(Number);
  const isTime = fact.kind === "time";
  return {
    fact,
    year: year!,
    month: month!,
    day: isTime ? day : undefined,
    minutes: isTime ? hour! * 60 + minute! : undefined,
  };
}

/** Reads a date or time that a text states; it must be that of a matching fact. */
type ReadDate = (match: RegExpMatchArray, fits: (moment: Moment) => boolean) => boolean;

/** Matches dates, clock times and days with facts. Times in a question about a meeting are accepted without one. */
export function readTimes(reading: Reading): void {
  const moments = reading.facts.map(momentOf).filter((moment) => moment !== undefined);
  const readDate: ReadDate = (match, fits) => {
    const fitting = moments.filter(fits).map(({ fact }) => fact);
    return fitting.length === 0 && reading.isAsked(match.index!, meetingQuestion)
      ? true
      : reading.support(match[0], match.index!, fitting);
  };
  takePoints(reading);
  readDates(reading, readDate);
  readClockTimes(reading, readDate);
  readDays(reading, readDate);
  // The duration of a conversation.
  reading.take(/\b[1-6]?\d(?:[-\s]to[-\s][1-6]?\d)?[-\s]minut\p{L}*/giu, (match) => {
    const sentence = reading.sentenceAt(match.index!);
    return conversation.test(sentence) && !travel.test(sentence);
  });
}

/** Numbered list items are not dates. */
function takePoints(reading: Reading): void {
  let point = 0;
  reading.take(
    new RegExp(`^[ \\t]*(\\d{1,2})[.)][ \\t]+(?=\\p{L})(?!(?:${monthNames})(?!\\p{L}))`, "gimu"),
    (match) => {
      if (Number(match[1]) !== point + 1) return false;
      point += 1;
      return true;
    },
  );
}

/** Numeric dates, and dates with the name of a month. */
function readDates(reading: Reading, readDate: ReadDate): void {
  reading.take(/\b(\d{4})-(\d{2})-(\d{2})\b/g, (match) =>
    readDate(
      match,
      ({ year, month, day }) => year === +match[1]! && month === +match[2]! && day === +match[3]!,
    ),
  );
  reading.take(
    /\b(\d{1,2})[./](\d{1,2})[./](\d{4}|\d{2})\b|\b(\d{1,2})\/(\d{1,2})\b|\b(\d{1,2})\.(\d{1,2})\.(?!\d)/g,
    (match) => {
      const [a, b] = [match[1] ?? match[4] ?? match[6], match[2] ?? match[5] ?? match[7]].map(Number);
      const stated = match[3] === undefined ? undefined : Number(match[3]);
      return readDate(
        match,
        ({ year, month, day }) =>
          ((month === a && day === b) || (month === b && day === a)) &&
          (stated === undefined || stated === year || stated === year % 100),
      );
    },
  );
  reading.take(
    new RegExp(
      `(?:(?<!\\d)(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?\\s+(?:of\\s+|de\\s+)?)?(?<!\\p{L})(${monthNames})(?!\\p{L})\\.?(?:\\s+(\\d{1,2})(?:st|nd|rd|th)?(?![\\d:]))?(?:,?\\s+(?:del?\\s+)?(\\d{4})(?!\\d))?`,
      "giu",
    ),
    (match) => {
      const [day, year] = [match[1] ?? match[3], match[4]].map((part) =>
        part === undefined ? undefined : Number(part),
      );
      const name = match[2]!.toLowerCase();
      // On their own, short names are words with other meanings: may, mars, march.
      if (day === undefined && year === undefined && (name.length < 5 || name === "march")) return false;
      return readDate(
        match,
        (moment) =>
          moment.month === months.get(name) &&
          (day === undefined || moment.day === day) &&
          (year === undefined || moment.year === year),
      );
    },
  );
}

function readClockTimes(reading: Reading, readDate: ReadDate): void {
  const readTime = (match: RegExpMatchArray, minutes: number, half?: string) => {
    const meant = half
      ? [(minutes % 720) + (half.toLowerCase() === "p" ? 720 : 0)]
      : minutes < 780
        ? [minutes, minutes + 720]
        : [minutes];
    return readDate(match, (moment) => moment.minutes !== undefined && meant.includes(moment.minutes));
  };
  // 2–5 p.m.: the time before the dash takes a.m. or p.m. from the other.
  reading.take(
    /\b(\d{1,2})(?:[:.](\d{2}))?(?=\s?(?:-|–|—|to|and|until|till)\s?\d{1,2}(?:[:.]\d{2})?\s?[ap]\.?m\b)/giu,
    (match) => readTime(match, Number(match[1]) * 60 + Number(match[2] ?? 0)),
  );
  reading.take(
    /\b(\d{1,2})(?::(\d{2})|\.(\d{2})(?= ?[ap]\.?m\b)| ?h(?: ?(\d{2}))?(?!\p{L})| ?uhr| ?o'clock|(?= ?[ap]\.?m\b))(?: ?(?:uhr|h)(?!\p{L}))?(?: ?([ap])\.?m\b\.?)?/giu,
    (match) =>
      readTime(match, Number(match[1]) * 60 + Number(match[2] ?? match[3] ?? match[4] ?? 0), match[5]),
  );
  reading.take(
    new RegExp(
      `\\b(half past|at)\\s+(${[...numberWords.keys()].join("|")})(?=\\s*(?:[.,;!?]|$|o'clock|sharp|on\\b|in the\\b))`,
      "gimu",
    ),
    (match) =>
      readTime(match, numberWords.get(match[2]!.toLowerCase())! * 60 + (/^half/i.test(match[1]!) ? 30 : 0)),
  );
  reading.take(/\b(?:noon|midday|mittags?|midi|mediodía)(?!\p{L})/giu, (match) => readTime(match, 720, "p"));
}

/** Days of the week, days relative to today, and years. */
function readDays(reading: Reading, readDate: ReadDate): void {
  reading.take(new RegExp(`(?<!\\p{L})(${[...weekdays.keys()].join("|")})s?(?!\\p{L})`, "giu"), (match) => {
    const wanted = weekdays.get(match[1]!.toLowerCase());
    return readDate(
      match,
      ({ year, month, day }) =>
        day !== undefined && new Date(Date.UTC(year, month - 1, day)).getUTCDay() === wanted,
    );
  });
  reading.take(/\b(?:tomorrow|tonight|yesterday|demain|pasado mañana|übermorgen)(?!\p{L})/giu, (match) =>
    readDate(match, () => false),
  );
  reading.take(
    /(?<!\b(?:early|late|mid|end|anfang|mitte|ende|début|fin)\s)\b(?:in|im jahr|en)\s+(\d{4})\b/giu,
    (match) => readDate(match, ({ fact, year }) => fact.kind === "month" && year === Number(match[1])),
  );
}
