/** The common parts of all portal pages: the head, the navigation and the signed-in user. */
import { escapeHtml } from "../../providers/mail/letter.ts";

/** The pages, in the order of the navigation. */
const ways = [
  ["/", "Plat"],
  ["/guides", "Guides"],
  ["/reference", "Reference"],
  ["/explorer", "Explorer"],
  ["/sales-floor", "Sales floor"],
] as const;

/**
 * Allows only the portal's own files and the API of this server; pages contain no inline scripts or styles.
 * @param isEdited whether the page has an editor, in which browsers may add style attributes to edited text
 */
export const policyOf = (isEdited: boolean): string =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self'",
    ...(isEdited ? ["style-src-attr 'unsafe-inline'"] : []),
    "img-src 'self' data:",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join("; ");

export interface PortalPage {
  /** Path of the page. */
  path: string;
  title: string;
  /** HTML of its main part. */
  main: string;
  /** The file of its script. Every page also has `portal.js`. */
  script?: string;
  /** Whether it uses the full width of the window. */
  wide?: boolean;
  /** Path of the same content as Markdown. */
  markdown?: string;
}

/** The whole page. It contains no data: users sign in, and the API decides what they see. */
export function page({ path, title, main, script, wide = false, markdown }: PortalPage): string {
  const links = ways.map(([to, name]) => {
    const isHere = to === "/" ? path === "/" : path === to || path.startsWith(`${to}/`);
    return `<li><a href="${to}"${isHere ? ' aria-current="page"' : ""}${to === "/" ? ' class="brand"' : ""}>${name}</a></li>`;
  });
  return [
    '<!doctype html><html lang="en"><head><meta charset="utf-8">',
    '<meta name="viewport" content="width=device-width, initial-scale=1"><meta name="color-scheme" content="light dark">',
    `<meta name="robots" content="noindex"><title>${escapeHtml(title)}${path === "/" ? "" : " · Plat"}</title>`,
    '<link rel="icon" href="/portal/icon.svg"><link rel="stylesheet" href="/portal/portal.css">',
    ...(markdown ? [`<link rel="alternate" type="text/markdown" href="${markdown}">`] : []),
    `<script type="module" src="/portal/${script ?? "portal.js"}"></script></head><body>`,
    '<a class="skip" href="#main">To the content</a>',
    `<header><nav aria-label="Pages"><ul>${links.join("")}</ul></nav><div id="account"></div></header>`,
    `<main id="main" tabindex="-1"${wide ? ' class="wide"' : ""}>${main}</main>`,
    '<p id="message" role="status"></p></body></html>',
  ].join("\n");
}
