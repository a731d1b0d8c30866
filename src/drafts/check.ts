/**
 * Whether a text states what facts support. It is read without trust, since whoever wrote it may have followed a note's words: what
 * cannot be matched with a fact is a violation, also where a person would understand it kindly. Names and numbers that a lead
 * gave of themselves support nothing.
 */
import type { Fact } from "../providers/drafts/index.ts";
import { months, number, numberWords, readings, weekdays } from "./numbers.ts";
import {
  courtesy,
  deferring,
  gifts,
  greeting,
  guarded,
  reductions,
  refusedWording,
  titled,
} from "./wording.ts";

export interface Verdict {
  /** Sentences for people; empty where the text stands. */
  violations: string[];
  /** Keys of the facts that it states. */
  used: Set<string>;
  /** Sentences that state something beside the facts, for whoever sends it to read twice. */
  loose: string[];
}

const limits = { subject: 200, body: 6000 };
const excerpt = (text: string) => `“${text.trim().replace(/\s+/g, " ").slice(0, 60)}”`;
const escape = (text: string) => text.replace(/[.*+?^${}()|[\]\\]/g, "\\$&");
/** Stands for what is settled, so that nothing reads it twice. */
const settled = (text: string) => "\u0001".repeat(text.length);
const monthNames = [...months.keys()]
  .sort((a, b) => b.length - a.length)
  .map(escape)
  .join("|");
const dollars = new Set(["USD", "CAD", "AUD", "NZD", "SGD", "HKD", "MXN"]);
const signs: Record<string, string> = { "€": "EUR", "£": "GBP", "¥": "JPY" };
const dollarsOf: Record<string, string> = {
  US: "USD",
  CA: "CAD",
  C: "CAD",
  AU: "AUD",
  A: "AUD",
  NZ: "NZD",
  S: "SGD",
  HK: "HKD",
  MX: "MXN",
};
const currencies = new Set(Intl.supportedValuesOf("currency"));

const nouns: [RegExp, Fact["field"]][] = [
  [/bed|bdr?m?s?\b|chambre|dormitorio|habitaci|recámara|schlafzimmer/iu, "bedrooms"],
  [/bath|salles? de bain|baño|bäder|badezimmer|bad\b/iu, "baths"],
  [/sq|square|pieds?|pies?\b|quadratf/iu, "sqft"],
];
const noun = nouns.map(([pattern]) => pattern.source).join("|");
const unitWords =
  "units?|suites?|apartments?|apt\\.?|condos?|homes?|lots?|residences?|penthouses?|unités?|appartements?|logements?|résidences?|unidad(?:es)?|apartamentos?|departamentos?|viviendas?|einheit(?:en)?|wohnung(?:en)?|#";
const label = String.raw`[A-Za-z]{0,3}-?\d[\w-]*`;

/** What follows a number that is no label. */
const isAmount = new RegExp(
  `^[-\\s]?(?:%|percent|per cent|pour cent|por ciento|prozent|[$€£¥]|k\\b|dollars?|euros?|${noun})|^\\s?[A-Z]{3}\\b`,
  "iu",
);

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

/** A question for a time to talk or to come, */
const proposal =
  /\b(?:suits?|works? for|are you (?:free|available)|could we|can we|shall we|may i|do you have (?:time|a moment)|how about|what about|be convenient|call you|passt|hätten sie|haben sie|seriez-vous|auriez-vous|avez-vous|le (?:vendría|viene)|podríamos|puede)(?!\p{L})/iu;
/** and for what somebody is after, */
const wish =
  /\b(?:are you looking|would you (?:like|rather|prefer)|do you (?:need|want|prefer)|you (?:had|have) in mind|suchen sie|möchten sie|cherchez-vous|préférez-vous|busca|prefiere)(?!\p{L})/iu;
/** of any home, not of those that there are; */
const ours =
  /\b(?:our|ours|we|it|this|these|those|units?|suites?|lots?|unsere?\p{L}*|wir|notre|nos|nous|nuestr\p{L}*|einheit|wohnung|unité|unidad)(?!\p{L})|\d{3}/iu;
/** none of which states something on the way. */
const statesToo =
  /open house|offer|price|promotion|deadline|ready|mov(?:e|ing)|hand(?:ed)? over|keys|deliver|sold|\bends?\b|begins?|starts?|clos(?:e|ing)|sign|decide|pay|deposit|remind|confirm|agreed|appointment|visite libre|offre|prix|offenen? tür|preis|angebot|precio|oferta|puertas abiertas/iu;
const talk =
  /\b(?:call|chat|talk|conversation|visit|tour|meeting|appel|entretien|visite|gespräch|anruf|besichtigung|llamada|visita)\b/iu;
const way =
  /\b(?:walk|drive|ride|commute|station|bus|train|school|beach|downtown|airport|from|to the|away|fahrt|fuß|entfernt|à pied|distancia|andando)\b/iu;
/** When a home is ready is a month that a fact says. */
const handover =
  /\b(?:mov(?:e|ing) in|(?<!you )(?<!you are )ready(?! to)|finished|complet(?:e|ed|ion)|hand(?:ed|ing)? over|handover|keys|bezugsfertig|einziehen|übergabe|schlüssel|emménag\p{L}*|livraison|remise des clés|mudarse|entrega|llaves)(?!\p{L})/iu;
const soon =
  /\b(?:next|this|coming) (?:week|month|year|spring|summer|fall|autumn|winter)\b|\bin (?:an?|one|two|three|four|six|\d+|a few|some) (?:days?|weeks?|months?|years?)\b|\b(?:by|before|in|around) (?:christmas|easter|new year|spring|summer|fall|autumn|winter)\b|nächste\p{L}* (?:woche|monat|jahr)|\bin \p{L}+ (?:wochen|monaten)|le mois prochain|\bdans \p{L}+ (?:semaines|mois)|el (?:mes que viene|próximo mes)|\ben \p{L}+ (?:semanas|meses)/iu;

/** Checks subject and body, as they would be sent. */
export function checkDraft(
  { subject, body }: { subject: string; body: string },
  facts: readonly Fact[],
  quotes: readonly { text: string }[] = [],
): Verdict {
  const violations = new Set<string>();
  const used = new Set<string>();
  const refuse = (what: string) => void violations.add(what);
  const unsupported = (text: string) => refuse(`No fact supports ${excerpt(text)}.`);

  if (subject.length > limits.subject || /[\r\n]/.test(subject)) refuse("The subject is no line of a mail.");
  if (body.length > limits.body) refuse("The text is too long for a mail.");
  const text = `${subject}\n${body}`;
  // Letters that cannot be seen, or look like others, hide what a text says.
  if (/[\p{Cf}\p{Co}\p{Cn}]|[^\P{Cc}\n\r\t]/u.test(text))
    refuse("The text has characters that cannot be seen.");
  if (/[^\P{Nd}0-9]|[\p{Nl}\p{No}]/u.test(text)) refuse("The text has unusual digits.");
  if (/<\/?[a-z!][^>]*>|\]\(|&#?\w+;/i.test(text)) refuse("The text has markup.");
  const whole = text.normalize("NFKC");
  let rest = whole;
  const take = (pattern: RegExp, read: (match: RegExpMatchArray) => boolean | void) => {
    rest = rest.replace(pattern, (...groups) => {
      const at = groups.findIndex((group, index) => index > 0 && typeof group === "number");
      const match = groups.slice(0, at) as unknown as RegExpMatchArray;
      match.index = groups[at] as number;
      return read(match) === false ? match[0] : settled(match[0]);
    });
  };
  const state = (supporting: readonly Fact[]) => {
    for (const fact of supporting) used.add(fact.key);
    return supporting.length > 0;
  };

  for (const problem of refusedWording(rest)) refuse(problem);
  const echo = repeated(text, quotes, facts);
  if (echo !== undefined) refuse(`It repeats a note: ${excerpt(echo)}.`);

  // Names as they are, digits and all; not those that leads give of themselves.
  for (const fact of facts) {
    const parts =
      fact.kind === "place"
        ? [fact.value, ...fact.value.split(", ")]
        : fact.kind === "name"
          ? [fact.value]
          : [];
    for (const part of parts)
      if (part.length > 3 && /\p{L}/u.test(part))
        take(
          new RegExp(`(?<![\\p{L}\\p{N}])${escape(part.normalize("NFKC"))}(?![\\p{L}\\p{N}])`, "giu"),
          () => void used.add(fact.key),
        );
    if (fact.kind !== "person") continue;
    if (rest.includes(fact.value)) used.add(fact.key);
    // April and May are people too.
    for (const word of fact.value.split(/\s+/))
      if (/^\p{L}{3,}$/u.test(word)) take(new RegExp(`(?<!\\p{L})${word}(?!\\p{L})`, "gu"), () => {});
  }

  // Links and addresses.
  const hosts = new Map(
    facts
      .filter(({ kind, value }) => kind === "link" && URL.canParse(value))
      .map((fact) => [new URL(fact.value).host, fact]),
  );
  const readLink = (link: string) => {
    const address = link.replace(/[).,;:!?\]]+$/, "");
    const absolute = /^https?:\/\//i.test(address) ? address : `https://${address}`;
    const url = URL.canParse(absolute) ? new URL(absolute) : undefined;
    const fact = url && !url.username ? hosts.get(url.host) : undefined;
    if (fact) used.add(fact.key);
    else refuse(`No known address: ${excerpt(address)}.`);
  };
  take(/[^\s@<>()]+@[^\s@<>()]+/g, ([match]) => refuse(`No known address: ${excerpt(match)}.`));
  take(/\b[a-z][a-z0-9+.-]*:\/\/\S+|\b(?:www\.|javascript:|data:|mailto:|tel:)\S+/gi, ([match]) =>
    readLink(match),
  );
  take(
    /(?<![\p{L}\p{N}])[\p{L}\p{N}-]+(?:\.[\p{L}\p{N}-]+)*\.\p{L}{2,}(?:\/\S*)?(?![\p{L}\p{N}])/gu,
    ([match]) => readLink(match),
  );
  take(/\b(?:dot|punkt|punto|point)\s+(?:com|net|org|info|io|biz|co|ru)\b/gi, ([match]) =>
    refuse(`No known address: ${excerpt(match)}.`),
  );

  // Units: which a sentence is about decides which facts support it. Without one, it goes on about those before.
  const units = facts.filter(({ kind }) => kind === "unit");
  const mentions: { at: number; unit: Fact }[] = [];
  /** Where a fact supports an amount or a time. */
  const backed: number[] = [];
  for (const unit of units)
    if (unit.value.length > 2 || !/^\d+$/.test(unit.value))
      take(
        new RegExp(`(?<![\\p{L}\\p{N}.,])${escape(unit.value)}(?![\\p{L}\\p{N}]|[., ]\\d)`, "giu"),
        (match) => {
          const [before, after] = [rest.slice(0, match.index), rest.slice(match.index! + match[0].length)];
          if (/(?:[A-Z]{3}|[$€£¥])\s?$/.test(before) || isAmount.test(after)) return false;
          mentions.push({ at: match.index!, unit });
          used.add(unit.key);
          return true;
        },
      );
  const readLabel = (written: string, at: number): void => {
    const unit = units.find(({ value }) => value.toUpperCase() === written.toUpperCase());
    if (!unit) return unsupported(`unit ${written}`);
    mentions.push({ at, unit });
    used.add(unit.key);
  };
  take(
    new RegExp(
      `(?<![\\p{L}])(?:${unitWords})[^\\S\\n]*(?:no\\.?|number|nº|n°|nr\\.?|#)?[^\\S\\n]*(${label})(?![-\\s]?(?:${noun}))((?:\\s*(?:,|&|and|et|y|und)\\s*${label})*)`,
      "giu",
    ),
    (match) => {
      readLabel(match[1]!, match.index!);
      for (const [next] of (match[2] ?? "").matchAll(new RegExp(label, "g"))) readLabel(next, match.index!);
    },
  );
  take(
    /\b(?:[Uu]nit|[Ss]uite|[Aa]partment|[Aa]pt|[Ll]ot|[Uu]nité|[Uu]nidad|[Ww]ohnung)\s+([A-HJ-Z])\b(?![’'])/g,
    (match) => readLabel(match[1]!, match.index!),
  );
  const bounds = [...whole.matchAll(/(?<!\b[ap]\.m)[.!?](?=\s)|\n/gi)].map(({ index }) => index);
  const sentenceOf = (at: number) => bounds.filter((bound) => bound < at).length;
  const sentenceAt = (at: number) => {
    const n = sentenceOf(at);
    return whole.slice((bounds[n - 1] ?? -1) + 1, (bounds[n] ?? whole.length) + 1);
  };
  /** Whether what stands there is only asked for, by a question that states nothing. */
  const isAsked = (at: number, question: RegExp) => {
    const sentence = sentenceAt(at);
    return /\?\s*$/.test(sentence) && question.test(sentence) && !statesToo.test(sentence);
  };
  const unitsAt = (at: number) => {
    let best = -1;
    for (const mention of mentions) {
      const sentence = sentenceOf(mention.at);
      if (sentence <= sentenceOf(at) && sentence > best) best = sentence;
    }
    return new Set(
      mentions.filter((mention) => sentenceOf(mention.at) === best).map(({ unit }) => unit.value),
    );
  }; /** Of the facts that say so, those about the units that the sentence is about, or about none. */
  const support = (written: string, at: number, candidates: readonly Fact[]): boolean => {
    const about = unitsAt(at);
    const fitting =
      about.size === 0 ? candidates : candidates.filter(({ unit }) => unit === undefined || about.has(unit));
    if (fitting.some(({ kind }) => kind !== "count")) backed.push(at);
    if (!state(fitting))
      unsupported(candidates.length > 0 ? `${written} of ${[...about].join(", ")}` : written);
    return true;
  };

  // Dates and times.
  const moments = facts.map(momentOf).filter((moment) => moment !== undefined);
  const readDate = (match: RegExpMatchArray, fits: (moment: Moment) => boolean) => {
    const fitting = moments.filter(fits).map(({ fact }) => fact);
    return fitting.length === 0 && isAsked(match.index!, proposal)
      ? true
      : support(match[0], match.index!, fitting);
  };
  // The points of a list.
  let point = 0;
  take(
    new RegExp(`^[ \\t]*(\\d{1,2})[.)][ \\t]+(?=\\p{L})(?!(?:${monthNames})(?!\\p{L}))`, "gimu"),
    (match) => {
      if (Number(match[1]) !== point + 1) return false;
      point += 1;
      return true;
    },
  );
  take(/\b(\d{4})-(\d{2})-(\d{2})\b/g, (match) =>
    readDate(
      match,
      ({ year, month, day }) => year === +match[1]! && month === +match[2]! && day === +match[3]!,
    ),
  );
  take(
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
  take(
    new RegExp(
      `(?:(?<!\\d)(\\d{1,2})(?:st|nd|rd|th|er|\\.|º)?\\s+(?:of\\s+|de\\s+)?)?(?<!\\p{L})(${monthNames})(?!\\p{L})\\.?(?:\\s+(\\d{1,2})(?:st|nd|rd|th)?(?![\\d:]))?(?:,?\\s+(?:del?\\s+)?(\\d{4})(?!\\d))?`,
      "giu",
    ),
    (match) => {
      const [day, year] = [match[1] ?? match[3], match[4]].map((part) =>
        part === undefined ? undefined : Number(part),
      );
      const name = match[2]!.toLowerCase();
      // Alone, short names are words of other meanings: may, mars, march.
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
  const readTime = (match: RegExpMatchArray, minutes: number, half?: string) => {
    const meant = half
      ? [(minutes % 720) + (half.toLowerCase() === "p" ? 720 : 0)]
      : minutes < 780
        ? [minutes, minutes + 720]
        : [minutes];
    return readDate(match, (moment) => moment.minutes !== undefined && meant.includes(moment.minutes));
  };
  // 2–5 p.m.: the one before the dash has its half from the other.
  take(
    /\b(\d{1,2})(?:[:.](\d{2}))?(?=\s?(?:-|–|—|to|and|until|till)\s?\d{1,2}(?:[:.]\d{2})?\s?[ap]\.?m\b)/giu,
    (match) => readTime(match, Number(match[1]) * 60 + Number(match[2] ?? 0)),
  );
  take(
    /\b(\d{1,2})(?::(\d{2})|\.(\d{2})(?= ?[ap]\.?m\b)| ?h(?: ?(\d{2}))?(?!\p{L})| ?uhr| ?o'clock|(?= ?[ap]\.?m\b))(?: ?(?:uhr|h)(?!\p{L}))?(?: ?([ap])\.?m\b\.?)?/giu,
    (match) =>
      readTime(match, Number(match[1]) * 60 + Number(match[2] ?? match[3] ?? match[4] ?? 0), match[5]),
  );
  take(
    new RegExp(
      `\\b(half past|at)\\s+(${[...numberWords.keys()].join("|")})(?=\\s*(?:[.,;!?]|$|o'clock|sharp|on\\b|in the\\b))`,
      "gimu",
    ),
    (match) =>
      readTime(match, numberWords.get(match[2]!.toLowerCase())! * 60 + (/^half/i.test(match[1]!) ? 30 : 0)),
  );
  take(/\b(?:noon|midday|mittags?|midi|mediodía)(?!\p{L})/giu, (match) => readTime(match, 720, "p"));
  take(new RegExp(`(?<!\\p{L})(${[...weekdays.keys()].join("|")})s?(?!\\p{L})`, "giu"), (match) => {
    const wanted = weekdays.get(match[1]!.toLowerCase());
    return readDate(
      match,
      ({ year, month, day }) =>
        day !== undefined && new Date(Date.UTC(year, month - 1, day)).getUTCDay() === wanted,
    );
  });
  take(/\b(?:tomorrow|tonight|yesterday|demain|pasado mañana|übermorgen)(?!\p{L})/giu, (match) =>
    readDate(match, () => false),
  );
  take(
    /(?<!\b(?:early|late|mid|end|anfang|mitte|ende|début|fin)\s)\b(?:in|im jahr|en)\s+(\d{4})\b/giu,
    (match) => readDate(match, ({ fact, year }) => fact.kind === "month" && year === Number(match[1])),
  );
  // How long it takes to talk.
  take(/\b[1-6]?\d(?:[-\s]to[-\s][1-6]?\d)?[-\s]minut\p{L}*/giu, (match) => {
    const sentence = sentenceAt(match.index!);
    return talk.test(sentence) && !way.test(sentence);
  });

  // Percentages, money, sizes.
  const ofKind = (kind: Fact["kind"], written: string, factor = 1) => {
    const meant = readings(written).map((value) => value * factor);
    return facts.filter(
      (fact) => fact.kind === kind && meant.some((value) => Math.abs(value - Number(fact.value)) < 0.005),
    );
  };
  take(
    new RegExp(`(${number})\\s*(?:%|percent\\b|per cent\\b|pour cent\\b|por ciento\\b|prozent\\b)`, "giu"),
    (match) => support(match[0], match.index!, ofKind("percent", match[1]!)),
  );
  const factors: Record<string, number> = { k: 1e3, m: 1e6, mn: 1e6, mio: 1e6 };
  const size = String.raw`\s?(k|m|mn|mio|thousand|million|mille|millions?|mil|millones|tausend|millionen)\b\.?`;
  const factorOf = (word: string | undefined) =>
    word === undefined
      ? 1
      : (factors[word.toLowerCase()] ?? (/^mill?i?on/i.test(word) || /^millon/i.test(word) ? 1e6 : 1e3));
  take(
    new RegExp(
      `(?:\\b([A-Z]{3})\\s?|([A-Z]{1,2})?([$€£¥])\\s?)(${number})(?:${size})?(?:\\s?(?:[A-Z]{3})\\b)?|(${number})(?:${size})?\\s?(?:([$€£¥])|\\b([A-Z]{3})\\b|\\b(dollars?|euros?|pounds?|livres?|libras?|pfund)\\b)|(${number})${size}`,
      "gu",
    ),
    (match) => {
      const code = match[1] ?? match[9] ?? (match[2] && (dollarsOf[match[2]] ?? "none"));
      if (match[2] === undefined && code !== undefined && !currencies.has(code)) return false;
      const written = match[4] ?? match[6] ?? match[11]!;
      const sign = match[3] ?? match[8];
      const fitting = ofKind("money", written, factorOf(match[5] ?? match[7] ?? match[12])).filter(
        ({ currency }) =>
          code !== undefined
            ? currency === code
            : sign === undefined
              ? true
              : sign === "$"
                ? dollars.has(currency!)
                : signs[sign] === currency,
      );
      return support(match[0], match.index!, fitting);
    },
  );
  const counted = (written: string, thing: string) => {
    const field = nouns.find(([pattern]) => pattern.test(thing))![1];
    const value = numberWords.get(written.toLowerCase());
    return ofKind("count", value === undefined ? written : String(value)).filter(
      (fact) => fact.field === field,
    );
  };
  take(
    new RegExp(
      `(?<![\\p{L}\\d])(${number}|${[...numberWords.keys()].join("|")})[-\\s]*(?:\\p{L}+[-\\s]+)?(${noun})`,
      "giu",
    ),
    (match) => {
      const known = counted(match[1]!, match[2]!);
      return known.length === 0 && isAsked(match.index!, wish) && !ours.test(sentenceAt(match.index!))
        ? true
        : support(match[0], match.index!, known);
    },
  );
  take(new RegExp(`(?<!\\p{L})(second|third|fourth)\\s+(${noun})`, "giu"), (match) => {
    const least = ["second", "third", "fourth"].indexOf(match[1]!.toLowerCase()) + 2;
    const field = nouns.find(([pattern]) => pattern.test(match[2]!))![1];
    return support(
      match[0],
      match.index!,
      facts.filter((fact) => fact.kind === "count" && fact.field === field && Number(fact.value) >= least),
    );
  });
  take(/\p{L}+[-\s](?:percent|per cent|pour cent|por ciento|prozent)(?!\p{L})/giu, ([match]) =>
    unsupported(match),
  );
  take(
    /\b(?:hundred|thousand|million|billion|mille|cientos?|mil|millón|millones|hundert|tausend|millionen)\b/giu,
    ([match]) => unsupported(match),
  );
  // Whatever number is left has to be one that a fact counts or costs.
  take(new RegExp(number, "g"), (match) => {
    const known = [...ofKind("count", match[0]), ...ofKind("money", match[0])];
    if (known.length > 0) return support(match[0], match.index!, known);
    return unsupported(match[0]);
  });

  // Whoever is called by name and title is no fact; but the one who is greeted.
  for (const { 0: name, index } of rest.matchAll(titled))
    if (!greeting.test(sentenceAt(index))) unsupported(name);
  // Money, contracts and building are spoken of with a fact, or to say who knows.
  const stands = violations.size === 0;
  for (const { 0: word, index } of whole.matchAll(guarded)) {
    const sentence = sentenceAt(index);
    if (
      stands &&
      !backed.some((at) => sentenceOf(at) === sentenceOf(index)) &&
      rest.slice(index, index + word.length) !== settled(word) &&
      !/\?\s*$/.test(sentence) &&
      !deferring.test(sentence)
    )
      unsupported(sentence);
  }

  const promotions = facts
    .filter(({ subjectType }) => subjectType === "promotion")
    .map(({ statement }) => statement.toLowerCase());
  for (const [word] of whole.toLowerCase().matchAll(reductions))
    if (promotions.length === 0) unsupported(word);
  for (const [word] of whole.toLowerCase().matchAll(gifts))
    if (!promotions.some((statement) => statement.includes(word))) unsupported(word);
  // What is not for sale is not offered.
  const sentences = whole.split(/(?<=[.!?])\s+|\n/);
  for (const sentence of sentences) {
    const time = soon.exec(sentence);
    if (time && handover.test(sentence)) unsupported(time[0]);
    const promised = /\b(?:is|are|stays?|remains?) (?:\w+ )?(?:reserved|held|kept) for you\b/i.exec(sentence);
    if (promised && !units.some(({ reserved }) => reserved)) unsupported(promised[0]);
    const offered =
      /\b(?:available|for sale|still (?:open|free)|disponibles?|à vendre|en venta|verfügbar|zu verkaufen|zu haben)(?!\p{L})/iu.exec(
        sentence,
      );
    if (
      !offered ||
      /\b(?:not?|no longer|isn't|aren't|n['’]\p{L}+|pas|plus|ya no|nicht|kein\p{L}*)(?!\p{L})/iu.test(
        sentence,
      )
    )
      continue;
    for (const unit of units)
      if (
        !unit.available &&
        new RegExp(`(?<![\\p{L}\\p{N}])${escape(unit.value)}(?![\\p{L}\\p{N}])`, "iu").test(sentence)
      )
        unsupported(`${unit.value} … ${offered[0]}`);
  }
  const loose = sentences
    .map((sentence) => sentence.trim())
    .filter(
      (sentence) =>
        wordsOf(sentence).length > 3 &&
        !/\?\s*$/.test(sentence) &&
        !courtesy.test(sentence) &&
        !rest.slice(whole.indexOf(sentence)).slice(0, sentence.length).includes("\u0001"),
    );
  return { violations: [...violations], used, loose };
}
