/**
 * Lints prose: the documents, and the descriptions of the schema, by the usual spelling of technical terms and the glossary of
 * CONTRIBUTING.md.
 */
import { globSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { join } from "node:path";
import { TextlintKernel, type TextlintPluginCreator, type TextlintRuleModule } from "@textlint/kernel";
import {
  buildSchema,
  isEnumType,
  isInputObjectType,
  isInterfaceType,
  isObjectType,
} from "postgraphile/graphql";
import { repository } from "./sources.ts";

const require = createRequire(import.meta.url);
const { default: markdown } = require("@textlint/textlint-plugin-markdown") as {
  default: TextlintPluginCreator;
};
const { default: terminology } = require("textlint-rule-terminology") as { default: TextlintRuleModule };

/**
 * Patterns of the rule's own list that do not apply: fields are named `id`, PostgreSQL has indexes, and the contract uses website and user
 * name.
 */
const notOurs = [
  "ID",
  "3-D",
  "built ?in(s)?",
  "readme(s)?",
  "ZIP",
  "id['’]?s",
  "indexes\\b",
  "web[- ]?site(s)?",
  "user[- ]name(s)?",
  "blank line(s)?",
  "lock[- ]file(s)?",
  "to-?do(s)?(?=[ ,.])",
];

/** A text with its name in findings. */
export interface Prose {
  name: string;
  /** Markdown. */
  text: string;
}

/**
 * Forbidden words with the right term, from the last column of the glossary. Entries with a remark in parentheses depend on the meaning, so
 * that only a reader can tell.
 */
export function glossaryTerms(contributing: string): [wrong: string, right: string][] {
  const [, glossary = ""] = contributing.split(/^## Glossary$/m);
  return glossary
    .split(/^## /m)[0]!
    .split("\n")
    .flatMap((line) => {
      const [, term = "", , not = ""] = line.split("|").map((cell) => cell.trim());
      if (/^(Term|-*)$/.test(term)) return [];
      const [right = term] = term.split(/,| \(/);
      return not
        .split(/,\s*/)
        .filter((word) => word !== "" && !word.includes("("))
        .map((word): [string, string] => [word, right]);
    });
}

/** A description of the schema, named by its coordinate. */
export interface Description extends Prose {
  /** Type of the field or argument, if it is one. */
  type: string;
}

/** All descriptions of a schema. */
export function descriptions(sdl: string): Description[] {
  const prose: Description[] = [];
  const add = (name: string, text: string | null | undefined, type: unknown = "") =>
    void (text && prose.push({ name, text, type: String(type) }));
  for (const type of Object.values(buildSchema(sdl).getTypeMap())) {
    add(type.name, type.description);
    if (isEnumType(type))
      for (const value of type.getValues()) add(`${type.name}.${value.name}`, value.description);
    if (isObjectType(type) || isInterfaceType(type) || isInputObjectType(type))
      for (const field of Object.values(type.getFields())) {
        add(`${type.name}.${field.name}`, field.description, field.type);
        if ("args" in field)
          for (const argument of field.args)
            add(`${type.name}.${field.name}(${argument.name}:)`, argument.description, argument.type);
      }
  }
  return prose;
}

/** Words that add nothing to a name: grammar, and what is true of every field. */
const emptyWords = new Set(
  (
    "a an the this that its it their they is are was were be been has do doe did of to in on for by with from at as " +
    "and or not s which whose when whether all any one own new given only if name id record value list"
  ).split(" "),
);

/** The words of a name or sentence that carry meaning, without their endings. */
function stems(text: string): string[] {
  return text
    .replace(/([a-z])([A-Z])/g, "$1 $2")
    .toLowerCase()
    .split(/[^a-z]+/)
    .filter((word) => !emptyWords.has(word))
    .map((word) => word.replace(/ies$/, "y").replace(/s$/, ""))
    .filter((word) => word !== "" && !emptyWords.has(word))
    .map((word) => word.replace(/(?:ed|ing|e|d)$/, ""));
}

/** A finding for each description that adds no word to the name, the type and the parent. */
export function repetitions(prose: readonly Description[]): string[] {
  return prose
    .filter(({ name, text, type }) => {
      const known = new Set(stems(`${name} ${type}`));
      return !name.startsWith("__") && stems(text).every((word) => known.has(word));
    })
    .map(
      ({ name, text }) =>
        `${name}: "${text}" repeats the name. Add what the name does not say: unit, source, example, when it is null.`,
    );
}

/** A finding for each forbidden word. */
export async function proseFaults(prose: readonly Prose[], terms: [string, string][]): Promise<string[]> {
  const rules = [
    {
      ruleId: "terminology",
      rule: terminology,
      options: { defaultTerms: true, exclude: notOurs, terms },
    },
  ];
  const plugins = [{ pluginId: "markdown", plugin: markdown }];
  const kernel = new TextlintKernel();
  const faults: string[] = [];
  // Many coordinates share a description.
  const texts = Map.groupBy(prose, ({ text }) => text);
  for (const [text, [{ name }]] of texts as Map<string, [Prose, ...Prose[]]>) {
    const { messages } = await kernel.lintText(text, { ext: ".md", filePath: name, plugins, rules });
    for (const { message, loc } of messages)
      faults.push(`${name}${name.endsWith(".md") ? `:${loc.start.line}` : ""}: ${message}.`);
  }
  return faults;
}

/** Paragraphs with fewer words may be similar. */
const FEWEST_WORDS = 12;

/** A finding for each paragraph of a document that another one repeats almost literally, as after a careless merge. */
export function repeatedParagraphs({ name, text }: Prose): string[] {
  const paragraphs = text
    .split(/\n\s*\n/)
    .filter((paragraph) => /^\s*[-*A-Z]/.test(paragraph) && !/^ *(\||```)/m.test(paragraph))
    .map((paragraph) => ({
      start: paragraph.trim().split("\n")[0]!,
      words: new Set(paragraph.toLowerCase().match(/[a-z_]{4,}/g)),
    }))
    .filter(({ words }) => words.size >= FEWEST_WORDS);
  return paragraphs.flatMap(({ start, words }, index) =>
    paragraphs
      .slice(0, index)
      .filter((other) => {
        const shared = [...words].filter((word) => other.words.has(word)).length;
        return shared > 0.73 * Math.min(words.size, other.words.size);
      })
      .map((other) => `${name}: Remove or rewrite “${start}”: it repeats “${other.start}”.`),
  );
}

/** The comments of a source file, with their lines: blocks and lines of TypeScript, lines of SQL and `comment on …`. */
function* commentLines(name: string, text: string): Generator<[line: number, comment: string]> {
  const isSql = name.endsWith(".sql");
  const comment = isSql ? /^\s*--(.*)$/ : /^\s*(?:\/\*\*|\*|\/\/)(.*)$/;
  let isStatement = false;
  for (const [index, line] of text.split("\n").entries()) {
    isStatement ||= isSql && line.startsWith("comment on ");
    const match = comment.exec(line);
    if (match) yield [index + 1, match[1]!];
    else if (isStatement) yield [index + 1, line];
    if (line.endsWith(";")) isStatement = false;
  }
}

/** A finding for each forbidden word in comments of sources, and in the English messages of a catalogue. */
export function sourceProse(files: readonly Prose[], terms: [string, string][]): string[] {
  const words = terms.map(([wrong, right]) => ({ pattern: new RegExp(`\\b${wrong}\\b`, "i"), wrong, right }));
  const faults = (place: string, text: string) =>
    words
      .filter(({ pattern }) => pattern.test(text))
      .map(({ wrong, right }) => `${place}: Use “${right}” instead of “${wrong}”.`);
  return files.flatMap(({ name, text }) =>
    name.endsWith(".json")
      ? Object.values(JSON.parse(text) as Record<string, Record<string, string>>).flatMap((section) =>
          Object.entries(section).flatMap(([key, message]) => faults(`${name} ${key}`, message)),
        )
      : [...commentLines(name, text)].flatMap(([line, comment]) => faults(`${name}:${line}`, comment)),
  );
}

/** The findings in the repository. */
export async function checkProse(): Promise<string[]> {
  const read = (file: string) => readFile(join(repository, file), "utf8");
  const documents = [
    ...(await readdir(repository)).filter((file) => file.endsWith(".md")),
    ...(await readdir(join(repository, "docs")))
      .filter((file) => file.endsWith(".md"))
      .map((file) => `docs/${file}`),
  ];
  const contributing = await read("CONTRIBUTING.md");
  const texts = await Promise.all(documents.map(async (name) => ({ name, text: await read(name) })));
  // The glossary itself contains the forbidden words.
  const prose = texts.map(({ name, text }) => ({
    name,
    text: name === "CONTRIBUTING.md" ? text.replace(/^\|.*$/gm, "") : text,
  }));
  const described = descriptions(await read("schema.graphql"));
  const terms = glossaryTerms(contributing);
  const sources = await Promise.all(
    ["src/**/*.ts", "migrations/objects/**/*.sql", "src/messages/catalogue/en.json"]
      .flatMap((pattern) => globSync(pattern, { cwd: repository }))
      .map(async (name) => ({ name, text: await read(name) })),
  );
  return [
    ...texts.flatMap(repeatedParagraphs),
    ...(await proseFaults([...prose, ...described], terms)),
    ...sourceProse(sources, terms),
    ...repetitions(described),
  ];
}
