/**
 * The texts of the service in each language: src/messages/catalogue/<language>.json. `errors` are messages for clients, `terms` the words
 * that are inserted into them, `mails` the parts of mails, of the pages behind their links, of text messages and of certificates. A key
 * does not change when its sentence is reworded.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** English comes first: functions, constraints and the code use it. */
export const languages = ["en", "fr", "de", "es"] as const;

export type Language = (typeof languages)[number];

export type Section = "errors" | "terms" | "mails";

export type Catalogue = Readonly<Record<Section, Readonly<Record<string, string>>>>;

const read = (language: Language) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "catalogue", `${language}.json`), "utf8")) as Catalogue;

export const catalogues = Object.fromEntries(
  languages.map((language) => [language, read(language)]),
) as Record<Language, Catalogue>;

/** Fills the placeholders of a text: `{0}`, `{name}`. */
export function fillPlaceholders(
  text: string,
  values: Readonly<Record<string, string>> | readonly string[],
): string {
  return text.replace(
    /\{(\w+)\}/g,
    (place, name: string) => (values as Record<string, string>)[name] ?? place,
  );
}

/** The placeholders of a text, each once, in alphabetical order. */
export const placeholdersOf = (text: string): string[] => [...new Set(text.match(/\{\w+\}/g))].toSorted();
