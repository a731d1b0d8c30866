/** Small pages that ask for confirmation. They load no resources and cannot be framed. */
import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import type { Language } from "../messages/catalogue.ts";
import { acceptedLanguage } from "../messages/language.ts";
import { localize } from "../messages/recognize.ts";
import { escapeHtml } from "../providers/mail/letter.ts";

const style =
  "body{font:16px/1.5 sans-serif;color:#222;max-width:36em;margin:4em auto;padding:0 1em}button{font:inherit;padding:.5em 1em}";
const policy = [
  "default-src 'none'",
  `style-src 'sha256-${createHash("sha256").update(style).digest("base64")}'`,
  "base-uri 'none'",
  "form-action 'self'",
  "frame-ancestors 'none'",
].join("; ");

/** The visitor of a page: nobody is signed in, so the language is that of the browser. */
export interface Reader {
  readonly language: Language;
  /** A sentence in that language, from the mail section of src/messages/catalogue. Plain text. */
  text(english: string): string;
}

/** The reader of a page, with the language of `Accept-Language`; English by default. */
export function readerOf(request: Pick<Request, "headers">): Reader {
  const language = acceptedLanguage(request.headers["accept-language"]) ?? "en";
  return { language, text: (english) => localize(english, language, "mails").message };
}

/**
 * @param title translated, or user content
 * @param body HTML
 */
export function sendPage(response: Response, { language }: Reader, title: string, ...body: string[]): void {
  const heading = escapeHtml(title);
  response.setHeader("Content-Security-Policy", policy);
  response.vary("Accept-Language");
  response
    .type("html")
    .send(
      [
        `<!doctype html><html lang="${language}"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">`,
        `<meta name="robots" content="noindex"><title>${heading}</title><style>${style}</style></head><body>`,
        `<h1>${heading}</h1>`,
        ...body,
        "</body></html>",
      ].join("\n"),
    );
}

/**
 * A paragraph as HTML.
 * @param emphasized values to emphasize
 */
export function paragraph({ text }: Reader, english: string, ...emphasized: string[]): string {
  let html = escapeHtml(text(english));
  for (const value of emphasized)
    html = html.replace(escapeHtml(value), (found) => `<strong>${found}</strong>`);
  return `<p>${html}</p>`;
}

/** A button that posts to the URL of the page. */
export const button = ({ text }: Reader, label: string): string =>
  `<form method="post"><button>${escapeHtml(text(label))}</button></form>`;
