/**
 * Finds the key of a message and its parameters. Functions, constraints and the code produce messages in English; the catalogue entry is
 * identified by the text.
 */
import { catalogues, fillPlaceholders, type Language } from "./catalogue.ts";

/** A localized message. */
export interface LocalizedMessage {
  /** Does not change when the message is reworded; clients translate by it. */
  key: string | undefined;
  /** The values of the placeholders {0}, {1} … */
  parameters: string[];
  /** In the requested language. */
  message: string;
}

interface Template {
  key: string;
  /** The text between the placeholders. */
  parts: string[];
}

interface Known {
  exact: ReadonlyMap<string, string>;
  /** Longest text first. */
  templates: readonly Template[];
}

const weight = ({ parts }: Template) => parts.join("").length;

function known(section: "errors" | "mails"): Known {
  const texts = Object.entries(catalogues.en[section]).map(([key, text]) => ({
    key,
    parts: text.split(/\{\d+\}/),
  }));
  return {
    exact: new Map(texts.filter(({ parts }) => parts.length === 1).map(({ key, parts }) => [parts[0]!, key])),
    templates: texts.filter(({ parts }) => parts.length > 1).toSorted((a, b) => weight(b) - weight(a)),
  };
}

const sections = { errors: known("errors"), mails: known("mails") };
const terms = new Map(Object.entries(catalogues.en.terms).map(([key, text]) => [text, key]));

/** The values of the placeholders, if the text matches the template. Takes time linear in the text. */
function valuesIn(text: string, { parts }: Template): string[] | undefined {
  const first = parts[0]!;
  const last = parts.at(-1)!;
  if (!text.startsWith(first) || !text.endsWith(last) || text.length < first.length + last.length)
    return undefined;
  const end = text.length - last.length;
  const values: string[] = [];
  let at = first.length;
  for (const part of parts.slice(1, -1)) {
    const found = text.indexOf(part, at);
    if (found < 0 || found + part.length > end) return undefined;
    values.push(text.slice(at, found));
    at = found + part.length;
  }
  return [...values, text.slice(at, end)];
}

/** Maximum depth of messages within messages: why a value is refused, inside where it is. */
const deepest = 2;

/**
 * A message in a language, with its key and parameters. A message that is not in the catalogue remains English, without a key.
 * @param english as produced by a function, a constraint, a mail or the code
 */
export function localize(
  english: string,
  language: Language,
  section: "errors" | "mails" = "errors",
  depth = 0,
): LocalizedMessage {
  const texts = catalogues[language][section];
  const { exact, templates } = sections[section];
  const key = exact.get(english);
  if (key !== undefined) return { key, parameters: [], message: texts[key]! };
  for (const template of templates) {
    const parameters = valuesIn(english, template);
    if (!parameters) continue;
    const translated = parameters.map((value) => within(value, language, section, depth));
    const message = language === "en" ? english : fillPlaceholders(texts[template.key]!, translated);
    return { key: template.key, parameters, message };
  }
  return { key: undefined, parameters: [], message: english };
}

function within(value: string, language: Language, section: "errors" | "mails", depth: number): string {
  if (language === "en" || depth >= deepest || value === "") return value;
  const term = terms.get(value);
  if (term !== undefined) return catalogues[language].terms[term]!;
  return localize(value, language, section, depth + 1).message;
}
