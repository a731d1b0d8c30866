/**
 * The one place of what the service says, in each language: src/messages/catalogue/<language>.json. `errors` are sentences for
 * callers, `terms` the words that are put into them, `mails` the parts of mails, of the pages
 * behind their links, of text messages and of certificates. A key stays when its sentence is written anew.
 */
import { readFileSync } from "node:fs";
import { join } from "node:path";

/** English comes first: it is what functions, constraints and the code themselves say. */
export const languages = ["en", "fr", "de", "es"] as const;

export type Language = (typeof languages)[number];

export type Section = "errors" | "terms" | "mails";

export type Catalogue = Readonly<Record<Section, Readonly<Record<string, string>>>>;

const read = (language: Language) =>
  JSON.parse(readFileSync(join(import.meta.dirname, "catalogue", `${language}.json`), "utf8")) as Catalogue;

export const catalogues = Object.fromEntries(
  languages.map((language) => [language, read(language)]),
) as Record<Language, Catalogue>;

/** Puts values in the places of a text that name them: `{0}`, `{name}`. */
export function filled(text: string, values: Readonly<Record<string, string>> | readonly string[]): string {
  return text.replace(
    /\{(\w+)\}/g,
    (place, name: string) => (values as Record<string, string>)[name] ?? place,
  );
}

/** The places of a text, each once, in alphabetical order. */
export const placesOf = (text: string): string[] => [...new Set(text.match(/\{\w+\}/g))].toSorted();
