/**
 * Collects the messages from where they are written: in functions of the database, comments of constraints, declared rows, and the code.
 * Each has `{}` for a value that is inserted.
 */
import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";
import type { ClientBase } from "pg";

export interface SourceMessage {
  /** The message in English, with `{}` for each inserted value, in order. */
  text: string;
  /** Its source: a function, a constraint or a file. */
  place: string;
}

/** The arguments after an opening parenthesis up to the closing one, split at the commas of this level. */
function argumentsAt(text: string, begin: number): string[] {
  const found: string[] = [];
  let from = begin;
  let depth = 0;
  for (let at = begin; at < text.length; at++) {
    const character = text[at]!;
    if (`'"\``.includes(character)) at = endOfLiteral(text, at) - 1;
    else if ("([{".includes(character)) depth++;
    else if (")]}".includes(character) && depth-- === 0) {
      found.push(text.slice(from, at));
      return found;
    } else if (character === "," && depth === 0) {
      found.push(text.slice(from, at));
      from = at + 1;
    }
  }
  return found;
}

/** The end of the literal that begins at `at`; doubled or escaped quotes do not end it. */
function endOfLiteral(text: string, at: number): number {
  const quote = text[at]!;
  for (let end = at + 1; end < text.length; end++) {
    if (quote !== "'" && text[end] === "\\") end++;
    else if (quote === "`" && text.startsWith("${", end)) end = text.indexOf("}", endOfNested(text, end + 2));
    else if (text[end] === quote) {
      if (quote !== "'" || text[end + 1] !== quote) return end + 1;
      end++;
    }
  }
  return text.length;
}

/** The position of the brace that ends an expression in a template literal; nested literals are skipped. */
function endOfNested(text: string, begin: number): number {
  let depth = 0;
  for (let at = begin; at < text.length; at++) {
    if (`'"\``.includes(text[at]!)) at = endOfLiteral(text, at) - 1;
    else if (text[at] === "{") depth++;
    else if (text[at] === "}" && depth-- === 0) return at;
  }
  return text.length;
}

/** A text that ends with a blank is part of a concatenation. */
const isSentence = (text: string) =>
  /^(?:[A-Z"]|\{\})[^]*\S$/.test(text) && /[a-z] [a-z{]|\{\} [a-z]/.test(text);

/** The sentences among the literals of a SQL expression; consecutive literals are joined. */
function sqlSentences(expression: string): string[] {
  const literals = expression.matchAll(/'(?:[^']|'')*'(?:\s+'(?:[^']|'')*')*/g);
  return [...literals]
    .map(([literal]) => literal.replace(/'\s+'/g, (gap) => (/\n/.test(gap) ? "" : gap)))
    .map((literal) => literal.slice(1, -1).replaceAll("''", "'"))
    .map((text) => text.replace(/%(?:\d+\$)?[sLI]/g, "{}").replaceAll("%%", "%"))
    .filter(isSentence);
}

/** The messages of app_hidden.fail calls in the source of a function. */
function failuresOf(source: string): string[] {
  return [...source.matchAll(/\bfail\(/g)].flatMap(({ index }) =>
    sqlSentences(argumentsAt(source, index + "fail(".length)[1] ?? ""),
  );
}

/** All sentences in the source of a function, without those of its comments. */
const sentencesOf = (source: string): string[] =>
  sqlSentences(source.replace(/--[^\n]*$/gm, "")).filter((text) => text.endsWith("."));

/** Functions whose sentences are part of the data of an answer: why a row is refused, or a record remains unchanged. */
const telling = ["import_errors", "cancellation_effect", "lead_row_result", "input_message"];

/** Messages of the database: of functions that refuse or report rows, of constraints, and of the requirements of states. */
export async function databaseMessages(client: ClientBase): Promise<SourceMessage[]> {
  const tellers = await client.query<{ place: string; source: string }>(
    `select p.oid::regprocedure::text as place, p.prosrc as source from pg_proc p
      where p.pronamespace::regnamespace::text like 'app\\_%' and (p.prosrc ~ $1 or p.proname ~ $1)`,
    [`\\y(${telling.join("|")})\\y`],
  );
  const functions = await client.query<{ place: string; source: string }>(
    `select p.oid::regprocedure::text as place, p.prosrc as source from pg_proc p
      where p.pronamespace::regnamespace::text like 'app\\_%' and p.prosrc ~ '\\yfail\\('`,
  );
  const sentences = await client.query<{ place: string; text: string }>(
    `select c.conname as place, regexp_replace(obj_description(c.oid, 'pg_constraint'), '^(@[^\\n]*\\n)+\\n', '') as text
       from pg_constraint c
      where c.connamespace::regnamespace::text like 'app\\_%' and c.contype <> 'f'
        and obj_description(c.oid, 'pg_constraint') is not null
     union all
     select i.indexrelid::regclass::text, obj_description(i.indexrelid, 'pg_class') from pg_index i
       join pg_class c on c.oid = i.indexrelid
      where i.indisunique and c.relnamespace::regnamespace::text like 'app\\_%'
        and obj_description(i.indexrelid, 'pg_class') is not null
     union all
     select 'transition_requirements', r.message from app_hidden.transition_requirements r`,
  );
  return [
    ...tellers.rows.flatMap(({ place, source }) => sentencesOf(source).map((text) => ({ text, place }))),
    ...functions.rows.flatMap(({ place, source }) => failuresOf(source).map((text) => ({ text, place }))),
    ...sentences.rows.map(({ text, place }) => ({ text: text.replace(/\s*\n\s*/g, " ").trim(), place })),
  ];
}

/** The literals of an expression in TypeScript, with their quotes. */
function literalsOf(expression: string): string[] {
  const found: string[] = [];
  for (let at = 0; at < expression.length; at++) {
    if (!`'"\``.includes(expression[at]!)) continue;
    const end = endOfLiteral(expression, at);
    found.push(expression.slice(at, end));
    at = end - 1;
  }
  return found;
}

/** A template literal with `{}` for each of its expressions. */
function withPlaceholders(template: string): string {
  let text = "";
  for (let at = 0; at < template.length; at++) {
    if (!template.startsWith("${", at)) text += template[at];
    else {
      text += "{}";
      at += 2;
      for (let depth = 0; template[at] !== "}" || depth > 0; at++)
        depth += template[at] === "{" ? 1 : template[at] === "}" ? -1 : 0;
    }
  }
  return text;
}

/** Calls that create an error for the client, by the name of the called function. */
const refusing =
  /\b(?:CodedError|AddressRefused|AddressUnknown|ConnectionFailed|badInput|badPassword|refusal|refuse|say|storeFailed)\(/g;

/** Folders whose errors do not reach clients of the API. */
const inside = /^(?:checks|cli|compute|dev|demo|docs|drafts|messages|providers|workflows)\//;

/** Messages in the code that are thrown for clients. */
export const codeMessages = (): SourceMessage[] =>
  messagesOf(
    globSync("**/*.ts", { cwd: sources }).filter((file) => !inside.test(file)),
    refusing,
  );

/** Calls that put a text on a page or a certificate. */
const showing = /\b(?:text|translated|paragraph|button|link|heading)\(/g;

/** Texts of pages behind links in mails, and of certificates. */
export const pageMessages = (): SourceMessage[] =>
  messagesOf([...globSync("http/*.ts", { cwd: sources }), "pdf/certificatePages.ts"], showing);

const sources = join(import.meta.dirname, "..");

/** The sentences among the first three arguments of calls in these files. */
function messagesOf(files: string[], calls: RegExp): SourceMessage[] {
  return files.flatMap((file) => {
    const source = readFileSync(join(sources, file), "utf8");
    return [...source.matchAll(calls)].flatMap(({ index, 0: call }) =>
      argumentsAt(source, index + call.length)
        .slice(0, 3)
        .flatMap(literalsOf)
        .map((literal) => withPlaceholders(literal.slice(1, -1)).replace(/\\(.)/g, "$1"))
        .filter(isSentence)
        .map((text) => ({ text, place: file })),
    );
  });
}
