import { createRequire } from "node:module";
import type sanitizeHtml from "sanitize-html";

const require = createRequire(import.meta.url);

const color = /^(#[0-9a-f]{3,8}|rgba?\([\d\s.,%]{1,40}\)|[a-z]{3,25})$/i;
const length = /^(auto|-?\d{1,4}(\.\d{1,3})?(px|em|rem|ex|ch|pt|%)?)$/i;
const lengths = /^((auto|\d{1,4}(\.\d{1,3})?(px|em|rem|pt|%)?)\s*){1,4}$/i;
const border = /^[\w\s#.,()%-]{1,80}$/;
const words = /^[\w\s,'"-]{1,200}$/;

/** Formatting of text and tables. Nothing that overlays or hides content, or loads resources. */
const styles: Record<string, RegExp[]> = {
  ...Object.fromEntries(["color", "background-color"].map((name) => [name, [color]])),
  ...Object.fromEntries(
    ["width", "max-width", "min-width", "height", "line-height", "letter-spacing", "font-size"].map(
      (name) => [name, [length]],
    ),
  ),
  ...Object.fromEntries(
    ["margin", "padding"].flatMap((name) =>
      ["", "-top", "-right", "-bottom", "-left"].map((side) => [`${name}${side}`, [lengths]]),
    ),
  ),
  ...Object.fromEntries(
    [
      "border",
      "border-top",
      "border-right",
      "border-bottom",
      "border-left",
      "border-radius",
      "border-collapse",
    ].map((name) => [name, [border]]),
  ),
  ...Object.fromEntries(
    ["font", "font-family", "font-weight", "font-style", "text-decoration", "text-transform"].map((name) => [
      name,
      [/^[\w\s,'"/.%-]{1,200}$/],
    ]),
  ),
  "text-align": [words],
  "vertical-align": [words],
  "white-space": [/^(normal|nowrap|pre-line|pre-wrap)$/],
};

/**
 * Sanitizes HTML of an organization for mails under the service's name: text, tables, images and links. Forms, scripts, style sheets,
 * frames and hidden content are removed, and every element is closed, so that the text of the service that follows is outside of it. Takes
 * up to 150 ms for the maximum of 100,000 characters, so it runs in the compute threads.
 */
export function sanitizeMailHtml(html: string): string {
  // PERF: only loaded by threads that process HTML.
  const sanitize = require("sanitize-html") as typeof sanitizeHtml;
  return sanitize(html, {
    allowedTags: [
      ...[
        "a",
        "abbr",
        "b",
        "big",
        "blockquote",
        "br",
        "caption",
        "center",
        "cite",
        "code",
        "col",
        "colgroup",
      ],
      ...[
        "dd",
        "del",
        "div",
        "dl",
        "dt",
        "em",
        "font",
        "h1",
        "h2",
        "h3",
        "h4",
        "h5",
        "h6",
        "hr",
        "i",
        "img",
        "ins",
      ],
      ...[
        "li",
        "ol",
        "p",
        "pre",
        "q",
        "s",
        "small",
        "span",
        "strike",
        "strong",
        "sub",
        "sup",
        "table",
        "tbody",
      ],
      ...["td", "tfoot", "th", "thead", "tr", "u", "ul"],
    ],
    allowedAttributes: {
      "*": ["style", "title", "dir", "lang", "align", "valign", "bgcolor", "role"],
      a: ["href"],
      img: ["src", "alt", "width", "height"],
      font: ["color", "face", "size"],
      ...Object.fromEntries(
        ["table", "td", "th", "tr", "col", "colgroup"].map((tag) => [
          tag,
          ["width", "height", "border", "cellpadding", "cellspacing", "colspan", "rowspan", "span"],
        ]),
      ),
    },
    allowedSchemes: ["https", "http", "mailto", "tel"],
    allowedSchemesByTag: { img: ["https"] },
    allowProtocolRelative: false,
    allowedStyles: { "*": styles },
    nonTextTags: ["script", "style", "textarea", "option", "noscript", "title"],
    nestingLimit: 60,
  });
}
