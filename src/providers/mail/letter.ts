import type { Language } from "../../messages/catalogue.ts";
import { localize } from "../../messages/recognize.ts";
import { formatValues } from "../../messages/values.ts";
import { oneLine } from "./composeMail.ts";

/** A mail is defined once, as blocks, and rendered as plain text and as HTML. */
export type Block =
  | string
  /** Text of a user, with its line breaks, visually separated from the service's own. */
  | { quote: string }
  /** Text of an organization, with its line breaks. */
  | { text: string }
  | { code: string }
  | { link: string; label: string }
  | { facts: [label: string, value: string | null | undefined][] };

export interface Letter {
  subject: string;
  blocks: Block[];
  /** Why the reader receives this mail; each part is a sentence. */
  footer: string | string[];
  /** Text between the blocks and the footer. */
  closing?: Block[];
  /** HTML of an organization, instead of the blocks: a balanced fragment. */
  html?: string | null;
}

interface Written {
  subject: string;
  text: string;
  html: string;
}

/** A mail in English, and in other languages. */
export interface Rendered extends Written {
  in(language: Language): Written;
}

/** Renders a letter; every value is escaped, in any block. */
export const render = (letter: Letter): Rendered => ({
  ...written(translated(letter, "en"), "en"),
  in: (language) => written(translated(letter, language), language),
});

/** A letter translated into a language; user-written text is not changed. */
function translated(letter: Letter, language: Language): Letter & { footer: string } {
  const say = (text: string) => formatValues(localize(text, language, "mails").message, language);
  const block = (of: Block): Block => {
    if (typeof of === "string") return say(of);
    if ("link" in of) return { ...of, label: say(of.label) };
    if ("facts" in of)
      return {
        facts: of.facts.map(([label, value]) => [say(label), value && formatValues(value, language)]),
      };
    return of;
  };
  return {
    ...letter,
    subject: say(letter.subject),
    blocks: letter.blocks.map(block),
    closing: letter.closing?.map(block),
    footer: [letter.footer].flat().map(say).join(" "),
  };
}

function written(
  { subject, blocks, footer, closing = [], html = null }: Letter & { footer: string },
  language: Language,
): Written {
  const end = [
    ...closing.map(htmlOf),
    `<p style="color:#666;font-size:13px;border-top:1px solid #ddd;padding-top:1em">${escapeHtml(footer)}</p>`,
  ];
  return {
    subject: oneLine(subject),
    text: [...[...blocks, ...closing].map(textOf), `-- \n${oneLine(footer, 1000)}`].join("\n\n") + "\n",
    html:
      html === null
        ? [
            `<!doctype html><html lang="${language}"><head><meta charset="utf-8"></head>`,
            '<body style="font:16px/1.5 sans-serif;color:#222;max-width:36em;margin:2em auto;padding:0 1em">',
            ...blocks.map(htmlOf),
            ...end,
            "</body></html>",
          ].join("\n")
        : [html, ...end].join("\n"),
  };
}

function textOf(block: Block): string {
  if (typeof block === "string") return oneLine(block, 2000);
  // The prefix of each line prevents a quote from passing for text of the service.
  if ("quote" in block)
    return lines(block.quote)
      .map((line) => `> ${oneLine(line, 20_000)}`)
      .join("\n");
  if ("text" in block)
    return lines(block.text)
      .map((line) => oneLine(line, 20_000))
      .join("\n");
  if ("code" in block) return `    ${block.code}`;
  if ("link" in block) return `${block.label}:\n${block.link}`;
  return given(block.facts)
    .map(([label, value]) => `${label}: ${oneLine(value, 300)}`)
    .join("\n");
}

function htmlOf(block: Block): string {
  if (typeof block === "string") return `<p>${escapeHtml(oneLine(block, 2000))}</p>`;
  if ("quote" in block)
    return `<blockquote style="margin:0;padding-left:1em;border-left:3px solid #ccc">${lines(block.quote).map(escapeHtml).join("<br>")}</blockquote>`;
  if ("text" in block) return `<p>${lines(block.text).map(escapeHtml).join("<br>")}</p>`;
  if ("code" in block)
    return `<p style="font:700 24px monospace;letter-spacing:2px">${escapeHtml(block.code)}</p>`;
  if ("link" in block) {
    const href = /^https?:\/\//.test(block.link) ? block.link : "";
    return `<p><a href="${escapeHtml(href)}">${escapeHtml(block.label)}</a></p>`;
  }
  return `<p>${given(block.facts)
    .map(([label, value]) => `${escapeHtml(label)}: ${escapeHtml(oneLine(value, 300))}`)
    .join("<br>")}</p>`;
}

const lines = (text: string): string[] => text.split(/\r\n|[\r\n\u2028\u2029]/);

const given = (facts: [string, string | null | undefined][]): [string, string][] =>
  facts.filter((fact): fact is [string, string] => Boolean(fact[1]));

const entities: Record<string, string> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&quot;",
  "'": "&#39;",
};
/** Escapes text for HTML, including attributes. */
export const escapeHtml = (text: string): string =>
  text.replace(/[&<>"']/g, (character) => entities[character]!);
