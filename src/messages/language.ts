import { languages, type Language } from "./catalogue.ts";

/** The language of a tag such as `fr-CA`, if there is a catalogue for it. */
export function languageOf(tag: string | null | undefined): Language | undefined {
  const primary = tag?.trim().split("-")[0]?.toLowerCase();
  return languages.find((language) => language === primary);
}

/** Longer headers are ignored: no browser sends them. */
const longest = 500;

/** PERF: headers that were read; browsers send few different ones. */
const known = new Map<string, Language | undefined>();
const mostKnown = 500;

/** The preferred language of an `Accept-Language` header among those that have a catalogue. */
export function acceptedLanguage(header: string | undefined): Language | undefined {
  if (header === undefined || header.length > longest) return undefined;
  if (known.has(header)) return known.get(header);
  if (known.size >= mostKnown) known.clear();
  const language = preferred(header);
  known.set(header, language);
  return language;
}

function preferred(header: string): Language | undefined {
  const ranges = header.split(",").map((range, place) => {
    const [tag = "", ...parameters] = range.split(";");
    const quality = parameters.map((text) => /^\s*q=([\d.]+)\s*$/.exec(text)?.[1]).find(Boolean);
    return { tag, place, quality: quality === undefined ? 1 : Number(quality) };
  });
  return ranges
    .filter(({ quality }) => quality > 0)
    .toSorted((a, b) => b.quality - a.quality || a.place - b.place)
    .map(({ tag }) => (tag.trim() === "*" ? ("en" as const) : languageOf(tag)))
    .find((language) => language !== undefined);
}
