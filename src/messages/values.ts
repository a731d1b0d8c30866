/**
 * Dates and amounts within a message are inserted as marks, and formatted when the language is known. Marks are enclosed in private-use
 * characters, which are removed from user-written text in mails.
 */
import type { Language } from "./catalogue.ts";

const [OPEN, CLOSE] = ["\ue000", "\ue001"];
const marks = /\ue000(when|money)\|([^|\ue000\ue001]*)\|([^|\ue000\ue001]*)\ue001/g;
const strays = /[\ue000\ue001]/g;

/** Date and time, with the name of the time zone. */
export const dateTime = (date: Date, timeZone = "UTC"): string =>
  `${OPEN}when|${date.toISOString()}|${timeZone}${CLOSE}`;

/** @param amount a decimal number as a string */
export const money = (amount: string, currency: string): string =>
  `${OPEN}money|${amount}|${currency}${CLOSE}`;

/** Languages as Intl expects them. */
const locales: Record<Language, string> = { en: "en-GB", fr: "fr-FR", de: "de-DE", es: "es-ES" };
/** Formats dates and numbers in a language. */
export const localeOf = (language: Language): string => locales[language];

/** English amounts use a decimal point and grouping commas, as in North America. */
const amounts: Record<Language, string> = { ...locales, en: "en-US" };

function writeOut(kind: string, value: string, of: string, language: Language): string {
  if (kind === "money")
    return Number(value).toLocaleString(amounts[language], {
      style: "currency",
      currency: of,
      currencyDisplay: "code",
    });
  const style = { dateStyle: "long", timeStyle: "short", timeZone: of } as const;
  const date = new Date(value).toLocaleString(locales[language], style);
  return of === "UTC" ? `${date} UTC` : `${date} (${of})`;
}

/** Formats the dates and amounts of a text in a language. */
export function formatValues(text: string, language: Language): string {
  return text
    .replace(marks, (_, kind: string, value: string, of: string) => {
      try {
        return writeOut(kind, value, of, language);
      } catch {
        // A user typed it: there is no such time zone or currency.
        return value;
      }
    })
    .replace(strays, "");
}
