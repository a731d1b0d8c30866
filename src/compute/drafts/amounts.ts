/** Percentages, money, sizes and counts of a draft; each remaining number must be one of them. */
import type { Fact } from "../../providers/drafts/index.ts";
import { number, numberWords, readings } from "./numberWords.ts";
import type { Reading } from "./reading.ts";
import { aboutOurHomes, wishQuestion } from "./wordingRules.ts";

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
/** Names of the parts of a home, for a pattern. */
export const homeParts = nouns.map(([pattern]) => pattern.source).join("|");

/**
 * Matches amounts with the facts of the same kind, to within half a cent. Numbers that match none become violations.
 */
export function readAmounts(reading: Reading): void {
  const ofKind = (kind: Fact["kind"], written: string, factor = 1) => {
    const meant = readings(written).map((value) => value * factor);
    return reading.facts.filter(
      (fact) => fact.kind === kind && meant.some((value) => Math.abs(value - Number(fact.value)) < 0.005),
    );
  };
  reading.take(
    new RegExp(`(${number})\\s*(?:%|percent\\b|per cent\\b|pour cent\\b|por ciento\\b|prozent\\b)`, "giu"),
    (match) => reading.support(match[0], match.index!, ofKind("percent", match[1]!)),
  );
  const factors: Record<string, number> = { k: 1e3, m: 1e6, mn: 1e6, mio: 1e6 };
  const size = String.raw`\s?(k|m|mn|mio|thousand|million|mille|millions?|mil|millones|tausend|millionen)\b\.?`;
  const factorOf = (word: string | undefined) =>
    word === undefined
      ? 1
      : (factors[word.toLowerCase()] ?? (/^mill?i?on/i.test(word) || /^millon/i.test(word) ? 1e6 : 1e3));
  reading.take(
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
      return reading.support(match[0], match.index!, fitting);
    },
  );
  const counted = (written: string, thing: string) => {
    const field = nouns.find(([pattern]) => pattern.test(thing))![1];
    const value = numberWords.get(written.toLowerCase());
    return ofKind("count", value === undefined ? written : String(value)).filter(
      (fact) => fact.field === field,
    );
  };
  reading.take(
    new RegExp(
      `(?<![\\p{L}\\d])(${number}|${[...numberWords.keys()].join("|")})[-\\s]*(?:\\p{L}+[-\\s]+)?(${homeParts})`,
      "giu",
    ),
    (match) => {
      const known = counted(match[1]!, match[2]!);
      return known.length === 0 &&
        reading.isAsked(match.index!, wishQuestion) &&
        !aboutOurHomes.test(reading.sentenceAt(match.index!))
        ? true
        : reading.support(match[0], match.index!, known);
    },
  );
  reading.take(new RegExp(`(?<!\\p{L})(second|third|fourth)\\s+(${homeParts})`, "giu"), (match) => {
    const least = ["second", "third", "fourth"].indexOf(match[1]!.toLowerCase()) + 2;
    const field = nouns.find(([pattern]) => pattern.test(match[2]!))![1];
    return reading.support(
      match[0],
      match.index!,
      reading.facts.filter(
        (fact) => fact.kind === "count" && fact.field === field && Number(fact.value) >= least,
      ),
    );
  });
  reading.take(/\p{L}+[-\s](?:percent|per cent|pour cent|por ciento|prozent)(?!\p{L})/giu, ([match]) =>
    reading.unsupported(match),
  );
  reading.take(
    /\b(?:hundred|thousand|million|billion|mille|cientos?|mil|millón|millones|hundert|tausend|millionen)\b/giu,
    ([match]) => reading.unsupported(match),
  );
  // Each remaining number must be one that a fact counts or prices.
  reading.take(new RegExp(number, "g"), (match) => {
    const known = [...ofKind("count", match[0]), ...ofKind("money", match[0])];
    if (known.length > 0) return reading.support(match[0], match.index!, known);
    return reading.unsupported(match[0]);
  });
}
