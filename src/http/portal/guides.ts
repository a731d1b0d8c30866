/** The guides: renders the documents of the repository as pages. */
import { readdir, readFile } from "node:fs/promises";
import { join, posix } from "node:path";
import { Marked, Renderer, type Tokens } from "marked";
import { escapeHtml } from "../../providers/mail/letter.ts";
import { page } from "./shell.ts";

export const repository = join(import.meta.dirname, "../../..");

/** Documents outside of docs/, by the names of their pages. */
const others: Readonly<Record<string, string>> = {
  readme: "README.md",
  changelog: "CHANGELOG.md",
  contributing: "CONTRIBUTING.md",
  security: "SECURITY.md",
  client: "packages/client/README.md",
};

/** The file of each guide, by the name of its page. */
async function guideFiles(): Promise<Map<string, string>> {
  const names = (await readdir(join(repository, "docs"))).filter((name) => name.endsWith(".md"));
  const own = names.filter((name) => name !== "README.md").map((name) => [name.slice(0, -3), `docs/${name}`]);
  return new Map([...own, ...Object.entries(others)] as [string, string][]);
}

/** The anchor that GitHub generates for a heading, so that links work in both places. */
const anchorOf = (text: string): string =>
  text
    .toLowerCase()
    .replaceAll(/<[^>]*>|&[a-z#0-9]+;/g, "")
    .replaceAll(/[^\p{L}\p{N}\s_-]/gu, "")
    .trim()
    .replaceAll(/\s/g, "-");

/** The target of a document's link in the portal; undefined if the file is not served. */
function linkFrom(file: string, href: string, pages: ReadonlyMap<string, string>): string | undefined {
  if (/^(?:https:|#)/.test(href)) return href;
  const [path = "", anchor] = href.split("#");
  const target = posix.join(posix.dirname(file), path);
  const after = anchor ? `#${anchor}` : "";
  if (target === "docs/README.md") return `/guides${after}`;
  if (target === "schema.graphql") return "/reference";
  const name = pages.get(target);
  return name && `/guides/${name}${after}`;
}

interface Rendered {
  title: string;
  html: string;
  parts: { anchor: string; text: string }[];
}

/** A document as HTML. Relative links are resolved from `file`. */
export function render(file: string, text: string, pages: ReadonlyMap<string, string>): Rendered {
  const parts: Rendered["parts"] = [];
  let title = "";
  const renderer = new Renderer();
  const plain = Renderer.prototype;
  renderer.heading = function ({ tokens, depth }: Tokens.Heading) {
    const html = this.parser.parseInline(tokens);
    const anchor = anchorOf(html);
    if (depth === 1) title ||= html.replaceAll(/<[^>]*>/g, "");
    if (depth === 2) parts.push({ anchor, text: html });
    return `<h${depth} id="${anchor}">${html}</h${depth}>\n`;
  };
  renderer.link = function ({ href, tokens }: Tokens.Link) {
    const to = linkFrom(file, href, pages);
    const html = this.parser.parseInline(tokens);
    return to ? `<a href="${escapeHtml(to)}">${html}</a>` : html;
  };
  // A table that is wider than the screen scrolls separately, also by keyboard.
  renderer.table = function (token: Tokens.Table) {
    return `<div class="scroll" tabindex="0" role="group" aria-label="Table">${plain.table.call(this, token)}</div>`;
  };
  renderer.code = ({ text: code, lang }: Tokens.Code) =>
    `<pre tabindex="0"${lang ? ` data-language="${escapeHtml(lang)}"` : ""}><code>${escapeHtml(code)}</code></pre>`;
  renderer.image = ({ text: alternative }: Tokens.Image) => escapeHtml(alternative);
  const html = new Marked({ renderer, gfm: true }).parse(text, { async: false });
  return { title, html, parts };
}

/** The URL of the Markdown version: `/guides/errors.md#codes`. */
const asMarkdown = (to: string): string => (to.startsWith("/") ? to.replace(/(?=#|$)/, ".md") : to);

/** A document whose links lead to the served Markdown. A link to a file that is not served becomes plain text. */
export function withServedLinks(file: string, text: string, pages: ReadonlyMap<string, string>): string {
  const link = /!?\[(?<words>(?:[^[\]]|\[[^\]]*\])*)\]\((?<href>[^)\s]+)\)/g;
  return text
    .split(/(^```[\s\S]*?^```$)/m)
    .map((part, index) =>
      index % 2 === 1
        ? part
        : part.replaceAll(link, (_, words: string, href: string) => {
            const to = linkFrom(file, href, pages);
            return to ? `[${words}](${asMarkdown(to)})` : words;
          }),
    )
    .join("");
}

/**
 * A guide by its name as Markdown; the list of all guides if the name is empty; undefined if there is no such guide.
 */
export async function guideText(name: string): Promise<string | undefined> {
  const files = await guideFiles();
  const file = name === "" ? "docs/README.md" : files.get(name);
  if (!file) return undefined;
  const pages = new Map([...files].map(([one, path]) => [path, one]));
  return withServedLinks(file, await readFile(join(repository, file), "utf8"), pages);
}

/** The first sentences of a document. */
function beginningOf(text: string): string {
  const paragraph = text.split(/\n{2,}/).find((part) => /^[A-Z`*[]/.test(part)) ?? "";
  const plain = paragraph.replaceAll(/\[([^\]]*)\]\([^)]*\)/g, "$1").replaceAll(/\s*\n\s*/g, " ");
  return (/^.*?[.:](?= [A-Z]|$)/.exec(plain)?.[0] ?? plain).replace(/:$/, ".");
}

/**
 * `/llms.txt`: an overview of the service for programs that read text, with links (llmstxt.org). Generated from the
 * documents.
 * @param reference paths of the reference in Markdown; empty if it is not served
 */
export async function textForAgents(reference: readonly { name: string; path: string }[]): Promise<string> {
  const files = await guideFiles();
  const pages = new Map([...files].map(([one, path]) => [path, one]));
  const read = (file: string) => readFile(join(repository, file), "utf8");
  const readme = await read("README.md");
  const [, ...parts] = (await read("docs/README.md")).split(/^## /m);
  const listed = new Set<string>();
  const linesOf = async (part: string) => {
    const found = [...part.matchAll(/\]\(([^)#]+)\)/g)].map(([, href]) => posix.join("docs", href!));
    const fresh = found.filter((file) => pages.has(file) && !listed.has(file) && listed.add(file));
    return Promise.all(
      fresh.map(async (file) => {
        const text = await read(file);
        const title = /^# (.*)$/m.exec(text)?.[1] ?? file;
        return `- [${title}](/guides/${pages.get(file)}.md): ${beginningOf(text)}`;
      }),
    );
  };
  const forCallers = await linesOf(parts[0] ?? "");
  const forOthers: string[] = [];
  for (const part of parts.slice(1)) forOthers.push(...(await linesOf(part)));
  return [
    "# Plat",
    `> ${beginningOf(readme)}`,
    "Operations are `POST /graphql` with `Authorization: Bearer TOKEN`; agents use `POST /mcp`. Guides and reference pages are Markdown at their addresses with `.md` added.",
    "## Guides",
    forCallers.join("\n"),
    ...(reference.length > 0
      ? [
          "## Reference",
          [
            "- [Overview](/reference.md): domains, and what is deprecated.",
            ...reference.map(
              ({ name, path }) => `- [${name}](${path}): queries, mutations and types of this domain.`,
            ),
          ].join("\n"),
        ]
      : []),
    "## Optional",
    forOthers.join("\n"),
    "",
  ].join("\n\n");
}

/**
 * The page of a guide by its name; the list of all guides if the name is empty; undefined if there is no such guide.
 */
export async function guidePage(name: string): Promise<string | undefined> {
  const files = await guideFiles();
  const file = name === "" ? "docs/README.md" : files.get(name);
  if (!file) return undefined;
  const pages = new Map([...files].map(([one, path]) => [path, one]));
  const text = await readFile(join(repository, file), "utf8");
  const { title, html, parts } = render(file, text, pages);
  const onThisPage =
    parts.length > 2
      ? `<nav class="parts" aria-label="On this page"><h2>On this page</h2><ul>${parts
          .map((part) => `<li><a href="#${part.anchor}">${part.text}</a></li>`)
          .join("")}</ul></nav>`
      : "";
  const more =
    name === ""
      ? '<p><a href="/guides/changelog">Changelog</a> · <a href="/reference#deprecated">What is deprecated, and until when</a></p>'
      : '<p><a href="/guides">All guides</a></p>';
  return page({
    path: name === "" ? "/guides" : `/guides/${name}`,
    title: name === "" ? "Guides" : title,
    markdown: name === "" ? "/guides.md" : `/guides/${name}.md`,
    main: `<div class="guide"><article>${more}${html}</article>${onThisPage}</div>`,
  });
}
