/** Small pages for people, which ask before something happens. They load nothing, and stand in no other page. */
import { createHash } from "node:crypto";
import type { Response } from "express";
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

/** @param body HTML */
export function sendPage(response: Response, title: string, ...body: string[]): void {
  response.setHeader("Content-Security-Policy", policy);
  response
    .type("html")
    .send(
      [
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">',
        `<meta name="robots" content="noindex"><title>${escapeHtml(title)}</title><style>${style}</style></head><body>`,
        `<h1>${escapeHtml(title)}</h1>`,
        ...body,
        "</body></html>",
      ].join("\n"),
    );
}

/** A button that posts to the address of the page. */
export const button = (label: string): string =>
  `<form method="post"><button>${escapeHtml(label)}</button></form>`;
