/** Small pages for people, which ask before something happens. They load nothing, and stand in no other page. */
import { createHash } from "node:crypto";
import type { Request, Response } from "express";
import type { Language } from "../messages/catalogue.ts";
import { acceptedLanguage } from "../messages/language.ts";
import { tell } from "../messages/recognize.ts";
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

/** Whoever opens a page: nobody is signed in there, so the browser says in which language they read. */
export interface Reader {
  readonly language: Language;
  /** A sentence of the service, which src/messages/catalogue has among those of mails, in that language. Plain text. */
  text(english: string): string;
}

export function readerOf(request: Pick<Request, "headers">): Reader {
  const language = acceptedLanguage(request.headers["accept-language"]) ?? "en";
  return { language, text: (english) => tell(english, language, "mails").message };
}

/**
 * @param title said already, or what people have written
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
 * A paragraph with a sentence, as HTML.
 * @param emphasized values in it that stand out
 */
export function paragraph({ text }: Reader, english: string, ...emphasized: string[]): string {
  let html = escapeHtml(text(english));
  for (const value of emphasized)
    html = html.replace(escapeHtml(value), (found) => `<strong>${found}</strong>`);
  return `<p>${html}</p>`;
}

/** A button that posts to the address of the page. */
export const button = ({ text }: Reader, label: string): string =>
  `<form method="post"><button>${escapeHtml(text(label))}</button></form>`;
