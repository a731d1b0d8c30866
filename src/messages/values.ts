/**
 * Dates and amounts within a sentence: they are put into it as marks, and written out when its language is known. Marks stand between
 * characters for private use, which no mail keeps of what people write.
 */
import type { Language } from "./catalogue.ts";

const [OPEN, CLOSE] = ["\ue000", "\ue001"];
const marks = /\ue000(when|money)\|([^|\ue000\ue001]*)\|([^|\ue000\ue001]*)\ue001/g;
const strays = /[\ue000\ue001]/g;

/** Day and time in a time zone, which is named. */
export const when = (date: Date, timeZone = "UTC"): string =>
  `${OPEN}when|${date.toISOString()}|${timeZone}${CLOSE}`;

/** @param amount a decimal number as text */
export const money = (amount: string, currency: string): string =>
  `${OPEN}money|${amount}|${currency}${CLOSE}`;

/** Languages as Intl writes them. */
const locales: Record<Language, string> = { en: "en-GB", fr: "fr-FR", de: "de-DE", es: "es-ES" };
/** How Intl writes dates and numbers in a language. */
export const localeOf = (language: Language): string => locales[language];

/** Amounts in English are written with a point for decimals and commas for thousands, as in North America. */
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

/** Writes out the dates and amounts of a text in a language. */
export function writtenOut(text: string, language: Language): string {
  return text
    .replace(marks, (_, kind: string, value: string, of: string) => {
      try {
        return writeOut(kind, value, of, language);
      } catch {
        // Somebody has typed it: there is no such time zone or currency.
        return value;
      }
    })
    .replace(strays, "");
}
