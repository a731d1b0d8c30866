import { createRequire } from "node:module";
import type sanitizeHtml from "sanitize-html";

const require = createRequire(import.meta.url);

const color = /^(#[0-9a-f]{3,8}|rgba?\([\d\s.,%]{1,40}\)|[a-z]{3,25})$/i;
const length = /^(auto|-?\d{1,4}(\.\d{1,3})?(px|em|rem|ex|ch|pt|%)?)$/i;
const lengths = /^((auto|\d{1,4}(\.\d{1,3})?(px|em|rem|pt|%)?)\s*){1,4}$/i;
const border = /^[\w\s#.,()%-]{1,80}$/;
const words = /^[\w\s,'"-]{1,200}$/;

/** What formats text and tables. Nothing that moves a part over another, hides it, or loads something. */
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
 * HTML that an organization has written, as it may stand in a mail under the service's name: text, tables, pictures and links. Forms,
 * scripts, style sheets, frames and what is not shown are omitted, and every element is closed, so that what the service adds
 * behind it stands outside of all of them. Takes up to 150 ms for the 100,000 characters that a step may have: the threads that compute
 * do it.
 */
export function sanitizeMailHtml(html: string): string {
  // PERF: loaded by those threads only that meet HTML.
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
