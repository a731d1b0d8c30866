/** The units that a draft mentions. The units of a sentence determine which facts support it. */
import { homeParts } from "./amounts.ts";
import { escape, type Reading } from "./reading.ts";

const unitWords =
  "units?|suites?|apartments?|apt\\.?|condos?|homes?|lots?|residences?|penthouses?|unités?|appartements?|logements?|résidences?|unidad(?:es)?|apartamentos?|departamentos?|viviendas?|einheit(?:en)?|wohnung(?:en)?|#";
const label = String.raw`[A-Za-z]{0,3}-?\d[\w-]*`;

/** Words after a number that is not a label of a unit. */
const isAmount = new RegExp(
  `^[-\\s]?(?:%|percent|per cent|pour cent|por ciento|prozent|[$€£¥]|k\\b|dollars?|euros?|${homeParts})|^\\s?[A-Z]{3}\\b`,
  "iu",
);

/** Matches labels of units, so that later rules know which facts apply to each sentence. */
export function readUnits(reading: Reading): void {
  const units = reading.facts.filter(({ kind }) => kind === "unit");
  for (const unit of units)
    if (unit.value.length > 2 || !/^\d+$/.test(unit.value))
      reading.take(
        new RegExp(`(?<![\\p{L}\\p{N}.,])${escape(unit.value)}(?![\\p{L}\\p{N}]|[., ]\\d)`, "giu"),
        (match) => {
          const [before, after] = [
            reading.rest.slice(0, match.index),
            reading.rest.slice(match.index! + match[0].length),
          ];
          if (/(?:[A-Z]{3}|[$€£¥])\s?$/.test(before) || isAmount.test(after)) return false;
          reading.mentions.push({ at: match.index!, unit });
          reading.used.add(unit.key);
          return true;
        },
      );
  const readLabel = (written: string, at: number): void => {
    const unit = units.find(({ value }) => value.toUpperCase() === written.toUpperCase());
    if (!unit) return reading.unsupported(`unit ${written}`);
    reading.mentions.push({ at, unit });
    reading.used.add(unit.key);
  };
  reading.take(
    new RegExp(
      `(?<![\\p{L}])(?:${unitWords})[^\\S\\n]*(?:no\\.?|number|nº|n°|nr\\.?|#)?[^\\S\\n]*(${label})(?![-\\s]?(?:${homeParts}))((?:\\s*(?:,|&|and|et|y|und)\\s*${label})*)`,
      "giu",
    ),
    (match) => {
      readLabel(match[1]!, match.index!);
      for (const [next] of (match[2] ?? "").matchAll(new RegExp(label, "g"))) readLabel(next, match.index!);
    },
  );
  reading.take(
    /\b(?:[Uu]nit|[Ss]uite|[Aa]partment|[Aa]pt|[Ll]ot|[Uu]nité|[Uu]nidad|[Ww]ohnung)\s+([A-HJ-Z])\b(?![’'])/g,
    (match) => readLabel(match[1]!, match.index!),
  );
}
