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

const exact = new Map<string, string>();
const templates: Template[] = [];
const terms = new Map<string, string>();

for (const [key, text] of Object.entries(catalogues.en.errors)) {
  const parts = text.split(/\{\d+\}/);
  if (parts.length === 1) exact.set(text, key);
  else templates.push({ key, parts });
}
for (const [key, text] of Object.entries(catalogues.en.terms)) terms.set(text, key);
/** The one that says most comes first. */
const weight = ({ parts }: Template) => parts.join("").length;
templates.sort((a, b) => weight(b) - weight(a));

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
 * @param english as a function, a constraint or the code says it
 */
export function tell(english: string, language: Language, depth = 0): Told {
  const { errors } = catalogues[language];
  const key = exact.get(english);
  if (key !== undefined) return { key, parameters: [], message: errors[key]! };
  for (const template of templates) {
    const parameters = valuesIn(english, template);
    if (!parameters) continue;
    const said = parameters.map((value) => within(value, language, depth));
    const message = language === "en" ? english : filled(errors[template.key]!, said);
    return { key: template.key, parameters, message };
  }
  return { key: undefined, parameters: [], message: english };
}

function within(value: string, language: Language, depth: number): string {
  if (language === "en" || depth >= deepest || value === "") return value;
  const term = terms.get(value);
  return term === undefined ? tell(value, language, depth + 1).message : catalogues[language].terms[term]!;
}
