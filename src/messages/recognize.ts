/**
 * Finds the key of a sentence and what was put into it. Functions, constraints and the code say their sentences in English; which
 * sentence of the catalogue one is, is known by its words.
 */
import { catalogues, filled, type Language } from "./catalogue.ts";

/** A sentence for a caller. */
export interface Told {
  /** Stays when the sentence is written anew; what a client translates by. */
  key: string | undefined;
  /** What stands in the places {0}, {1} … of the sentence. */
  parameters: string[];
  /** In the language that was asked for. */
  message: string;
}

interface Template {
  key: string;
  /** What stands between the places. */
  parts: string[];
}

interface Known {
  exact: ReadonlyMap<string, string>;
  /** The one that says most comes first. */
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

/** What stands in the places of a template, where the text is one of it. Takes time in proportion to the text. */
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

/** Sentences within sentences: why a value is refused, in what says where it stands. */
const deepest = 2;

/**
 * A sentence in a language, with its key and parameters. What no catalogue has stays English, without a key.
 * @param english as a function, a constraint, a mail or the code says it
 */
export function tell(
  english: string,
  language: Language,
  section: "errors" | "mails" = "errors",
  depth = 0,
): Told {
  const texts = catalogues[language][section];
  const { exact, templates } = sections[section];
  const key = exact.get(english);
  if (key !== undefined) return { key, parameters: [], message: texts[key]! };
  for (const template of templates) {
    const parameters = valuesIn(english, template);
    if (!parameters) continue;
    const said = parameters.map((value) => within(value, language, section, depth));
    const message = language === "en" ? english : filled(texts[template.key]!, said);
    return { key: template.key, parameters, message };
  }
  return { key: undefined, parameters: [], message: english };
}

function within(value: string, language: Language, section: "errors" | "mails", depth: number): string {
  if (language === "en" || depth >= deepest || value === "") return value;
  const term = terms.get(value);
  if (term !== undefined) return catalogues[language].terms[term]!;
  return tell(value, language, section, depth + 1).message;
}
