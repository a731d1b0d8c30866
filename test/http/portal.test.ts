/** What the pages of the portal and their Markdown say, each part of it by itself. */
import { expect, test } from "@jest/globals";
import { buildSchema } from "postgraphile/graphql";
import {
  guidePage,
  guideText,
  render,
  textForAgents,
  withServedLinks,
} from "../../src/http/portal/guides.ts";
import { MarkdownReference } from "../../src/http/portal/markdownReference.ts";
import { readFacts, type Facts } from "../../src/http/portal/referenceFacts.ts";
import { page } from "../../src/http/portal/shell.ts";

const pages = new Map([
  ["docs/errors.md", "errors"],
  ["README.md", "readme"],
]);

test("links of a document lead to pages, and those to files that are not served become text", () => {
  const { html } = render(
    "docs/a.md",
    [
      "[out](https://plat.example/x)",
      "[here](#part)",
      "[all](README.md#call-the-api)",
      "[schema](../schema.graphql)",
      "[errors](errors.md)",
      "[codes](errors.md#codes)",
      "[start](../README.md)",
      "[code](../src/server.ts)",
    ].join("\n\n"),
    pages,
  );
  expect(html.trim().split("\n")).toEqual([
    '<p><a href="https://plat.example/x">out</a></p>',
    '<p><a href="#part">here</a></p>',
    '<p><a href="/guides#call-the-api">all</a></p>',
    '<p><a href="/reference">schema</a></p>',
    '<p><a href="/guides/errors">errors</a></p>',
    '<p><a href="/guides/errors#codes">codes</a></p>',
    '<p><a href="/guides/readme">start</a></p>',
    "<p>code</p>",
  ]);
});

test("headings have the anchors of GitHub, the first one is the title, and those below it are the parts", () => {
  const text =
    "# The *whole* `API` & more\n\n## What it: costs, in_parts\n\n### Deeper\n\n## Über-uns  \n\n# Another\n";
  expect(render("docs/a.md", text, pages)).toEqual({
    title: "The whole API &amp; more",
    parts: [
      { anchor: "what-it-costs-in_parts", text: "What it: costs, in_parts" },
      { anchor: "über-uns", text: "Über-uns" },
    ],
    html: [
      '<h1 id="the-whole-api--more">The <em>whole</em> <code>API</code> &amp; more</h1>',
      '<h2 id="what-it-costs-in_parts">What it: costs, in_parts</h2>',
      '<h3 id="deeper">Deeper</h3>',
      '<h2 id="über-uns">Über-uns</h2>',
      '<h1 id="another">Another</h1>\n',
    ].join("\n"),
  });
});

test("code is escaped, tables scroll, and of images only the words remain", () => {
  const html = (text: string) => render("docs/a.md", text, pages).html;
  expect(html('```graphql\n{ a(b: "<c>") }\n```')).toBe(
    '<pre tabindex="0" data-language="graphql"><code>{ a(b: &quot;&lt;c&gt;&quot;) }</code></pre>',
  );
  expect(html("```\na\n```")).toBe('<pre tabindex="0"><code>a</code></pre>');
  expect(html("| A |\n| --- |\n| b |")).toMatch(
    /^<div class="scroll" tabindex="0" role="group" aria-label="Table"><table>[^]*<td>b<\/td>[^]*<\/table>\s*<\/div>$/,
  );
  expect(html("![a <b>](https://elsewhere.example/x.png)")).toBe("<p>a &lt;b&gt;</p>\n");
});

test("links of the served Markdown lead to Markdown, except in blocks of code", () => {
  const text = [
    "See [codes](errors.md#codes), [the [schema]](../schema.graphql), [out](https://plat.example/x), [here](#part).",
    "```\n[codes](errors.md)\n```",
    "[all](README.md) and ![picture](picture.png)[code](../src/server.ts)",
  ];
  expect(withServedLinks("docs/a.md", text.join("\n\n"), pages).split("\n\n")).toEqual([
    "See [codes](/guides/errors.md#codes), [the [schema]](/reference.md), [out](https://plat.example/x), [here](#part).",
    text[1],
    "[all](/guides.md) and picturecode",
  ]);
});

test("each guide has a page with its title, its parts and its Markdown", async () => {
  const errors = (await guidePage("errors"))!;
  expect(errors).toMatch("<title>Errors · Plat</title>");
  expect(errors).toMatch('<p><a href="/guides">All guides</a></p><h1 id="errors">Errors</h1>');
  expect(errors).toMatch('<link rel="alternate" type="text/markdown" href="/guides/errors.md">');
  expect(errors).toMatch('<a href="/guides" aria-current="page">Guides</a>');
  const list = (await guidePage(""))!;
  expect(list).toMatch("<title>Guides · Plat</title>");
  expect(list).toMatch('<link rel="alternate" type="text/markdown" href="/guides.md">');
  expect(list).toMatch('<article><p><a href="/guides/changelog">Changelog</a> · ');
  expect(list).toMatch('href="/guides" aria-current="page"');
  expect(list).toMatch(
    '<nav class="parts" aria-label="On this page"><h2>On this page</h2><ul><li><a href="#call-the-api">Call the API</a></li><li>',
  );
  expect(list).not.toMatch("All guides");
  for (const [name, title] of [
    ["readme", "Plat"],
    ["contributing", "Contributing"],
    ["changelog", "Changelog"],
  ] as const)
    expect([name, await guidePage(name)]).toEqual([
      name,
      expect.stringContaining(`<title>${title} · Plat</title>`),
    ]);
  // A short one needs no list of its parts.
  for (const name of ["settings", "clients"])
    expect([name, await guidePage(name)]).toEqual([name, expect.stringContaining("</article></div></main>")]);
  expect(await guidePage("nothing")).toBeUndefined();
  expect(await guidePage("README")).toBeUndefined();
});

test("each guide is served as Markdown", async () => {
  expect(await guideText("errors")).toMatch(/^# Errors\n/);
  expect(await guideText("")).toMatch(/^# Documents\n[^]*\]\(\/guides\/first-conversation\.md\)/);
  expect(await guideText("client")).toMatch(/^# /);
  expect(await guideText("security")).toMatch(/^# /);
  expect(await guideText("nothing")).toBeUndefined();
});

test("the overview for agents lists guides for callers first, each once, and the reference if it is served", async () => {
  const text = await textForAgents([{ name: "Leads", path: "/reference/domains/leads.md" }]);
  const parts = text.split("\n\n");
  expect(parts.map((part) => part.split("\n")[0]!.slice(0, 40))).toEqual([
    "# Plat",
    "> Plat is a GraphQL service on which dev",
    "Operations are `POST /graphql` with `Aut",
    "## Guides",
    "- [First conversation](/guides/first-con",
    "## Reference",
    "- [Overview](/reference.md): domains, an",
    "## Optional",
    expect.stringMatching(/^- \[/),
    "",
  ]);
  expect(parts[1]).toMatch(/[.]$/);
  expect(parts[6]).toBe(
    "- [Overview](/reference.md): domains, and what is deprecated.\n- [Leads](/reference/domains/leads.md): queries, mutations and types of this domain.",
  );
  const listed = [parts[4]!, parts[8]!].flatMap((part) => part.split("\n"));
  for (const line of listed) expect(line).toMatch(/^- \[[A-Z@][^\]]+\]\(\/guides\/[\w-]+\.md\): .*[.]$/);
  const targets = listed.map((line) => /\((.*?)\)/.exec(line)![1]);
  expect(new Set(targets).size).toBe(targets.length);
  expect(parts[4]).toMatch("(/guides/errors.md)");
  expect(parts[8]).toMatch("(/guides/backups.md)");
  const without = await textForAgents([]);
  expect(without).not.toMatch("reference.md): domains");
  expect(without.split("\n\n")).toEqual([...parts.slice(0, 5), ...parts.slice(7)]);
});

test("a page marks where the viewer is, and names itself", () => {
  const home = page({ path: "/", title: "Plat", main: "<p>a</p>" });
  expect(home).toMatch("<title>Plat</title>");
  expect(home).toMatch(
    '<ul><li><a href="/" aria-current="page" class="brand">Plat</a></li><li><a href="/guides">Guides</a></li>',
  );
  expect(home).toMatch('src="/portal/portal.js"');
  expect(home).toMatch('<main id="main" tabindex="-1"><p>a</p></main>');
  expect(home).not.toMatch("alternate");
  const wide = page({ path: "/reference", title: "A < B", main: "", script: "reference.js", wide: true });
  expect(wide).toMatch("<title>A &lt; B · Plat</title>");
  expect(wide).toMatch(
    '<li><a href="/" class="brand">Plat</a></li><li><a href="/guides">Guides</a></li><li><a href="/reference" aria-current="page">Reference</a></li>',
  );
  expect(wide).toMatch('src="/portal/reference.js"');
  expect(wide).toMatch('<main id="main" tabindex="-1" class="wide"></main>');
  // A name that begins alike is another page.
  expect(page({ path: "/guidesmen", title: "a", main: "" })).not.toMatch("aria-current");
});

test("facts of the reference are the rows of the tables in docs/", async () => {
  const { permissions, states, errors, examples } = await readFacts();
  expect(permissions["createLead"]).toEqual(["`lead.read`, `lead.write`"]);
  expect(Object.keys(permissions)).toEqual(expect.arrayContaining(["acceptBuyerInvite", "createLead"]));
  expect(Object.keys(permissions).filter((name) => !/^[a-z][A-Za-z]+$/.test(name))).toEqual([]);
  expect(states["Agreement"]!.slice(0, 2)).toEqual([
    { from: "(new)", byHand: ["DRAFT", "EXECUTED", "SENT", "SIGNED"], byService: [] },
    { from: "DRAFT", byHand: ["SENT", "VOIDED"], byService: [] },
  ]);
  expect(states["Agreement"]!.at(-1)).toEqual({ from: "EXPIRED", byHand: [], byService: [] });
  expect(errors.filter(({ code, status }) => !/^[A-Z_]+$/.test(code) || !/^\d{3}/.test(status))).toEqual([]);
  expect(errors.map(({ code }) => code)).toContain("NOT_FOUND");
  expect(examples.length).toBeGreaterThan(10);
});

const schema = buildSchema(/* GraphQL */ `
  type Query {
    "A lead."
    lead("Its id." id: ID!): Lead
    "Leads of\\na project."
    leads(first: Int = 10, sort: [LeadSort!] @deprecated(reason: "Use order.")): [Lead!]!
  }
  type Mutation {
    "Adds a lead."
    createLead("The input." input: CreateLeadInput!): Lead
    "Adds it."
    addLead(input: CreateLeadInput!): Lead @deprecated(reason: "Use createLead.")
  }
  type Subscription {
    leadEvents: Lead
  }
  "Somebody who may buy."
  type Lead {
    "Their name."
    name(short: Boolean): String!
    status: Mood @deprecated(reason: "Ask mood.")
  }
  input CreateLeadInput {
    "A name."
    name: String! = "x"
    old: Int @deprecated(reason: "Nobody reads it.")
  }
  enum Mood {
    "Good."
    GOOD
    BAD @deprecated(reason: "Is never set.")
  }
  enum LeadSort {
    NAME
  }
  union LeadOrMood = Lead
`);
const facts: Facts = {
  permissions: { createLead: ["`lead.write`"], addLead: ["nothing"] },
  states: { Lead: [{ from: "NEW", byHand: ["COLD", "LOST"], byService: [] }] },
  errors: [
    "BAD_USER_INPUT",
    "UNAUTHENTICATED",
    "FORBIDDEN",
    "CONFLICT",
    "RATE_LIMITED",
    "LIMIT_EXCEEDED",
  ].map((code) => ({ code, status: "200", when: "" })),
  examples: [
    {
      name: "a",
      title: "A lead",
      about: ["createLead"],
      document: "mutation { a }",
      variables: { a: 1 },
      answer: { b: 2 },
      events: ["lead.created", "lead.assigned"],
    } as never,
    { name: "b", title: "None", about: ["createLead"], document: "{ b }", events: [] } as never,
  ],
};
const reference = new MarkdownReference(schema, facts);
const paragraphs = (path: string) => reference.text(path)!.split("\n\n");

test("the overview of the reference counts operations by domain, and lists what is deprecated", () => {
  const [title, summary, heading, list, deprecated, old] = paragraphs("");
  expect([title, heading, deprecated]).toEqual(["# Reference", "## Domains", "## Deprecated"]);
  expect(summary).toMatch(
    /^5 operations and \d+ types\. Every .* such as \[lead\]\(\/reference\/lead\.md\)\. Operations are POSTs to `\/graphql`: /,
  );
  expect(list!.split("\n").filter((line) => !line.endsWith(": 0 operations"))).toEqual([
    "- [Leads](/reference/domains/leads.md): 4 operations",
    "- [Webhooks and events](/reference/domains/webhooks-and-events.md): 1 operations",
  ]);
  expect(old!.trim().split("\n")).toEqual([
    "- [addLead](/reference/addLead.md): **Deprecated.** Use createLead.",
    "- [Lead](/reference/Lead.md).`status`: **Deprecated.** Ask mood.",
    "- [CreateLeadInput](/reference/CreateLeadInput.md).`old`: **Deprecated.** Nobody reads it.",
    "- [Mood](/reference/Mood.md).`BAD`: **Deprecated.** Is never set.",
  ]);
});

test("a domain lists its queries, mutations and types in the order of their names", () => {
  expect(reference.text("domains/leads")).toBe(
    [
      "# Leads",
      "## Queries",
      "- [lead](/reference/lead.md): A lead.\n- [leads](/reference/leads.md): Leads of a project.",
      "## Mutations",
      "- [addLead](/reference/addLead.md): Adds it.\n- [createLead](/reference/createLead.md): Adds a lead.",
      "## Types",
      "- [Lead](/reference/Lead.md): Somebody who may buy.\n- [LeadOrMood](/reference/LeadOrMood.md): \n",
    ].join("\n\n"),
  );
  expect(reference.text("domains/webhooks-and-events")).toBe(
    "# Webhooks and events\n\n## Subscriptions\n\n- [leadEvents](/reference/leadEvents.md): \n",
  );
  expect(reference.text("domains/nothing")).toBeUndefined();
});

test("an operation has its permissions, arguments, members, errors, states and examples", () => {
  expect(paragraphs("createLead")).toEqual([
    "# createLead",
    "Mutation, Leads.",
    "Adds a lead.",
    "Answers [`Lead`](/reference/Lead.md). Other operations: [Leads](/reference/domains/leads.md).",
    "## Permissions",
    "- `lead.write`",
    "## Arguments",
    "- `input` [`CreateLeadInput!`](/reference/CreateLeadInput.md): The input.",
    "## Members of CreateLeadInput",
    [
      '- `name` [`String!`](/reference/String.md): A name. Default: `"x"`.',
      "- `old` [`Int`](/reference/Int.md):  **Deprecated.** Nobody reads it.",
    ].join("\n"),
    "## Errors",
    "`BAD_USER_INPUT`, `UNAUTHENTICATED`, `FORBIDDEN`, `CONFLICT`, `RATE_LIMITED`; [what they mean](/guides/errors.md).",
    "## States: Lead",
    "| From | Manually to | By the service to |\n| --- | --- | --- |\n| NEW | COLD, LOST | – |",
    "## Examples",
    "### A lead",
    "```graphql\nmutation { a }\n```",
    "Variables:",
    '```json\n{\n  "a": 1\n}\n```',
    "Answer:",
    '```json\n{\n  "b": 2\n}\n```',
    "Causes `lead.created`, `lead.assigned`.",
    "### None",
    "```graphql\n{ b }\n```\n",
  ]);
  expect(paragraphs("addLead")[1]).toBe("Mutation, Leads. **Deprecated.** Use createLead.");
  // Whoever needs no token is not asked for one.
  expect(reference.text("addLead")).not.toMatch("UNAUTHENTICATED");
  expect(paragraphs("leads")).toEqual([
    "# leads",
    "Query, Leads.",
    "Leads of\na project.",
    "Answers [`[Lead!]!`](/reference/Lead.md). Other operations: [Leads](/reference/domains/leads.md).",
    "Records that the viewer may not read are missing from lists, and null elsewhere: [permissions](/guides/permissions.md).",
    "## Arguments",
    [
      "- `first` [`Int`](/reference/Int.md):  Default: `10`.",
      "- `sort` [`[LeadSort!]`](/reference/LeadSort.md):  **Deprecated.** Use order.",
    ].join("\n"),
    "## Errors",
    "`BAD_USER_INPUT`, `LIMIT_EXCEEDED`, `RATE_LIMITED`; [what they mean](/guides/errors.md).\n",
  ]);
});

test("a type has its fields, its states, and the operations that return it", () => {
  expect(paragraphs("Lead")).toEqual([
    "# Lead",
    "Type, Leads.",
    "Somebody who may buy.",
    "## Fields",
    [
      "- `name` [`String!`](/reference/String.md): Their name.",
      "  - `short` [`Boolean`](/reference/Boolean.md): ",
      "- `status` [`Mood`](/reference/Mood.md):  **Deprecated.** Ask mood.",
    ].join("\n"),
    "## States: Lead",
    "| From | Manually to | By the service to |\n| --- | --- | --- |\n| NEW | COLD, LOST | – |",
    "## Operations",
    "- [lead](/reference/lead.md) (query)\n- [leads](/reference/leads.md) (query)\n- [createLead](/reference/createLead.md) (mutation)\n- [addLead](/reference/addLead.md) (mutation)\n- [leadEvents](/reference/leadEvents.md) (subscription)\n",
  ]);
  expect(paragraphs("Mood")).toEqual([
    "# Mood",
    "Type, Accounts.",
    "## Values",
    "- `GOOD`: Good.\n- `BAD`:  **Deprecated.** Is never set.\n",
  ]);
  expect(paragraphs("LeadOrMood").slice(2)).toEqual(["## Types", "- [Lead](/reference/Lead.md)\n"]);
  expect(paragraphs("CreateLeadInput").slice(2)).toEqual([
    "## Members",
    expect.stringMatching(/^- `name` /),
    "## Operations",
    "- [createLead](/reference/createLead.md) (mutation)\n- [addLead](/reference/addLead.md) (mutation)\n",
  ]);
});
