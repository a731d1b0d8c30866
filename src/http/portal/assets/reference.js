// @ts-check
/** The reference: what the service says of its schema, with permissions, states and examples of the guides. */
import { known as signedIn } from "./portal.js";
import { codesOf, domainNames, domainOf, named, stateNameOf, written } from "./entries.js";
import { readFacts, readSchema } from "./schema.js";
import { element, Refused, session } from "./session.js";
import { codeFor } from "./snippets.js";
import { stateDiagram } from "./stateDiagram.js";

await signedIn;

const list = /** @type {HTMLElement} */ (document.getElementById("list"));
const entry = /** @type {HTMLElement} */ (document.getElementById("entry"));
const search = /** @type {HTMLInputElement} */ (document.getElementById("search"));
const found = /** @type {HTMLElement} */ (document.getElementById("found"));

/** @typedef {{ key: string, kind: string, name: string, domain: string, about: any }} Entry */
/** @type {Map<string, Entry>} */
const entries = new Map();
/** @type {any} */
let facts;

/** Aggregates and the like are found by search and by links; listed, they would hide the rest. */
const isListed = (/** @type {Entry} */ { kind, name }) =>
  kind !== "type" || !/(Aggregates|Payload|Input|Connection|Edge|Filter|OrderBy|Sort|Range)$/.test(name);

/** @param {any} schema */
function collect({ __schema: schema }) {
  entries.clear();
  const types = new Map(schema.types.map((/** @type {any} */ type) => [type.name, type]));
  for (const [kind, root] of [
    ["query", schema.queryType],
    ["mutation", schema.mutationType],
    ["subscription", schema.subscriptionType],
  ])
    for (const about of types.get(root?.name)?.fields ?? []) {
      const domain = domainOf(about.name);
      entries.set(`${kind}.${about.name}`, {
        key: `${kind}.${about.name}`,
        kind,
        name: about.name,
        domain,
        about,
      });
    }
  const roots = [schema.queryType, schema.mutationType, schema.subscriptionType].map((root) => root?.name);
  for (const about of schema.types) {
    if (about.name.startsWith("__") || roots.includes(about.name)) continue;
    const key = `type.${about.name}`;
    entries.set(key, { key, kind: "type", name: about.name, domain: domainOf(about.name), about });
  }
}

const link = (/** @type {Entry} */ { key, name, about }) =>
  element("a", { href: `#${key}`, ...(about.isDeprecated && { className: "deprecated" }) }, name);

function showList() {
  const words = search.value.toLowerCase().split(/\s+/).filter(Boolean);
  if (words.length > 0) {
    const matching = [...entries.values()]
      .map((one) => ({
        one,
        name: one.name.toLowerCase(),
        text: `${one.name} ${one.about.description ?? ""}`.toLowerCase(),
      }))
      .filter(({ text }) => words.every((word) => text.includes(word)))
      .sort(
        (a, b) =>
          Number(words.every((word) => b.name.includes(word))) -
            Number(words.every((word) => a.name.includes(word))) || a.name.length - b.name.length,
      )
      .slice(0, 60);
    found.textContent = matching.length === 60 ? "60 and more" : `${matching.length} found`;
    list.replaceChildren(
      element(
        "ul",
        { className: "found" },
        ...matching.map(({ one }) =>
          element("li", {}, link(one), element("span", { className: "quiet" }, ` ${one.kind}`)),
        ),
      ),
    );
    return;
  }
  found.textContent = "";
  const parts = domainNames.map((domain) => {
    const here = [...entries.values()].filter((one) => one.domain === domain && isListed(one));
    const groups = ["query", "mutation", "subscription", "type"].flatMap((kind) => {
      const some = here.filter((one) => one.kind === kind).sort((a, b) => a.name.localeCompare(b.name));
      if (some.length === 0) return [];
      const title =
        { query: "Queries", mutation: "Mutations", subscription: "Subscriptions", type: "Types" }[kind] ?? "";
      return [
        element("h3", {}, title),
        element("ul", {}, ...some.map((one) => element("li", {}, link(one)))),
      ];
    });
    const isOpen = location.hash && here.some(({ key }) => `#${key}` === location.hash);
    return element("details", { open: Boolean(isOpen) }, element("summary", {}, domain), ...groups);
  });
  list.replaceChildren(
    ...parts,
    element(
      "p",
      {},
      element("a", { href: "#errors" }, "Errors"),
      " · ",
      element("a", { href: "#deprecated" }, "Deprecated"),
    ),
  );
}

/** Text of the schema: paragraphs, with `names` as code. @param {string | null} text */
function prose(text) {
  return (text ?? "")
    .split(/\n\n+/)
    .filter(Boolean)
    .map((paragraph) => element("p", {}, ...inline(paragraph)));
}
const inline = (/** @type {string} */ text) =>
  text
    .split(/(`[^`]+`)/)
    .map((part) => (/^`.+`$/.test(part) ? element("code", {}, part.slice(1, -1)) : part));

/** @param {any} type */
function typeLink(type) {
  const text = written(type);
  const name = named(type);
  const [before = "", after = ""] = text.split(name);
  return element("code", {}, before, element("a", { href: `#type.${name}` }, name), after);
}

/** @param {string} title @param {any[]} values */
function members(title, values) {
  if (!values?.length) return [];
  return [
    element("h2", {}, title),
    element(
      "dl",
      { className: "members" },
      ...values.flatMap((one) => [
        element(
          "dt",
          {},
          element("code", { ...(one.isDeprecated && { className: "deprecated" }) }, one.name),
          one.type ? " " : "",
          one.type ? typeLink(one.type) : "",
        ),
        element(
          "dd",
          {},
          ...prose(one.description),
          one.defaultValue ? element("p", { className: "quiet" }, `${one.defaultValue} where omitted.`) : "",
          one.isDeprecated
            ? element("p", { className: "refusal" }, `Deprecated. ${one.deprecationReason}`)
            : "",
          one.args?.length
            ? element(
                "p",
                { className: "quiet" },
                "Takes ",
                ...one.args.flatMap((/** @type {any} */ arg, /** @type {number} */ index) => [
                  index ? ", " : "",
                  element("code", {}, `${arg.name}: ${written(arg.type)}`),
                ]),
              )
            : "",
        ),
      ]),
    ),
  ];
}

/** @param {any} example */
function exampleParts(example) {
  const answer = example.answer && JSON.stringify(example.answer, null, 2);
  return [
    element("h3", {}, example.title),
    codeFor({ query: example.document, variables: example.variables }),
    answer ? element("h4", {}, "Answer") : "",
    answer ? element("pre", { tabIndex: 0, ariaLabel: "Answer" }, element("code", {}, answer)) : "",
    example.events?.length
      ? element(
          "p",
          {},
          "Causes ",
          ...example.events.flatMap((/** @type {string} */ name, /** @type {number} */ index) => [
            index ? ", " : "",
            element("code", {}, name),
          ]),
          ".",
        )
      : "",
    element("p", {}, element("a", { href: `/explorer#${example.name}` }, "Run it in the explorer")),
  ];
}

/** @param {Entry} one */
function showEntry(one) {
  const { kind, name, about, domain } = one;
  const examples = facts.examples.filter((/** @type {any} */ example) => example.about.includes(name));
  const machine = stateNameOf(about, facts.states);
  const takes = facts.permissions[name];
  const isOperation = kind !== "type";
  entry.replaceChildren(
    element(
      "p",
      { className: "quiet" },
      `${domain} · ${isOperation ? kind : about.kind.toLowerCase().replaceAll("_", " ")}`,
    ),
    element("h1", {}, name),
    ...(about.isDeprecated
      ? [element("p", { className: "refusal" }, `Deprecated. ${about.deprecationReason}`)]
      : []),
    ...prose(about.description),
    ...(isOperation ? [element("p", {}, "Answers ", typeLink(about.type), ".")] : []),
    ...(kind === "mutation" && takes
      ? [
          element("h2", {}, "Permissions"),
          element("ul", {}, ...takes.map((/** @type {string} */ row) => element("li", {}, ...inline(row)))),
        ]
      : []),
    ...(kind === "query"
      ? [
          element("h2", {}, "Permissions"),
          element(
            "p",
            {},
            "Each record is returned to viewers who may read it. Other records are missing from lists, and null elsewhere. ",
            element("a", { href: "/guides/permissions" }, "Who may read what"),
            ".",
          ),
        ]
      : []),
    ...members(isOperation ? "Arguments" : "", isOperation ? about.args : []),
    ...(isOperation ? inputOf(about) : []),
    ...members("Fields", isOperation ? [] : about.fields),
    ...members("Members", isOperation ? [] : about.inputFields),
    ...members("Values", isOperation ? [] : about.enumValues),
    ...(isOperation
      ? [
          element("h2", {}, "Errors"),
          element(
            "p",
            {},
            ...codesOf(one, inputFieldsOf(about), facts).flatMap((code, index) => [
              index ? ", " : "",
              element("a", { href: "#errors" }, element("code", {}, code)),
            ]),
          ),
        ]
      : []),
    ...(machine && (kind === "type" || kind === "mutation")
      ? [element("h2", {}, "States"), ...stateDiagram(machine, facts.states[machine])]
      : []),
    ...(examples.length ? [element("h2", {}, "Examples"), ...examples.flatMap(exampleParts)] : []),
    ...(kind === "type" ? usedBy(name) : []),
  );
  document.title = `${name} · Plat`;
}

/** The input of an operation. @param {any} about */
const inputTypeOf = (about) =>
  named(about.args?.find((/** @type {any} */ arg) => arg.name === "input")?.type ?? {});
const inputFieldsOf = (/** @type {any} */ about) =>
  entries.get(`type.${inputTypeOf(about)}`)?.about.inputFields;

/** The fields of its input, inlined so that nobody has to follow the link. @param {any} about */
const inputOf = (about) => members(`Members of ${inputTypeOf(about)}`, inputFieldsOf(about));

/** @param {string} name */
function usedBy(name) {
  const users = [...entries.values()].filter(
    ({ kind, about }) =>
      kind !== "type" &&
      (named(about.type) === name || about.args.some((/** @type {any} */ arg) => named(arg.type) === name)),
  );
  return users.length
    ? [
        element("h2", {}, "Operations"),
        element("ul", {}, ...users.map((one) => element("li", {}, link(one)))),
      ]
    : [];
}

function showErrors() {
  entry.replaceChildren(
    element("h1", {}, "Errors"),
    element(
      "p",
      {},
      "What each carries is in the guide about ",
      element("a", { href: "/guides/errors" }, "errors"),
      ".",
    ),
    element(
      "dl",
      { className: "members" },
      ...facts.errors.flatMap((/** @type {any} */ one) => [
        element("dt", {}, element("code", {}, one.code), ` HTTP ${one.status}`),
        element("dd", {}, ...inline(one.when)),
      ]),
    ),
  );
}

function showDeprecated() {
  const deprecated = [...entries.values()].flatMap((one) => [
    ...(one.about.isDeprecated ? [{ where: link(one), reason: one.about.deprecationReason }] : []),
    ...[...(one.about.fields ?? []), ...(one.about.inputFields ?? []), ...(one.about.enumValues ?? [])]
      .filter((/** @type {any} */ member) => member.isDeprecated)
      .map((/** @type {any} */ member) => ({
        where: element("a", { href: `#${one.key}` }, `${one.name}.${member.name}`),
        reason: member.deprecationReason,
      })),
  ]);
  entry.replaceChildren(
    element("h1", {}, "Deprecated"),
    element(
      "p",
      {},
      "It keeps working until the date at least; ",
      element("a", { href: "/guides/versions" }, "what a version promises"),
      ".",
    ),
    element(
      "dl",
      { className: "members" },
      ...deprecated.flatMap(({ where, reason }) => [
        element("dt", {}, where),
        element("dd", {}, ...inline(reason ?? "")),
      ]),
    ),
  );
}

function showOverview() {
  entry.replaceChildren(
    element("h1", {}, "Reference"),
    element(
      "p",
      {},
      `${[...entries.values()].filter(({ kind }) => kind !== "type").length} operations and ${[...entries.values()].filter(({ kind }) => kind === "type").length} types. Choose one, or search.`,
    ),
    element(
      "p",
      {},
      "Operations are POSTs to ",
      element("code", {}, "/graphql"),
      ": ",
      element("a", { href: "/guides/transport" }, "transport"),
      ", ",
      element("a", { href: "/guides/errors" }, "errors"),
      ", ",
      element("a", { href: "/guides/queries" }, "what a query may cost"),
      ".",
    ),
  );
  document.title = "Reference · Plat";
}

function show(isFocused = true) {
  const key = location.hash.slice(1);
  const one = entries.get(key);
  if (one) showEntry(one);
  else if (key === "errors") showErrors();
  else if (key === "deprecated") showDeprecated();
  else showOverview();
  for (const way of list.querySelectorAll("a")) {
    const isHere = way.getAttribute("href") === location.hash;
    if (isHere) way.setAttribute("aria-current", "true");
    else way.removeAttribute("aria-current");
  }
  if (!isFocused) return;
  const heading = /** @type {HTMLElement} */ (entry.querySelector("h1"));
  heading.tabIndex = -1;
  heading.focus();
  window.scrollTo(0, 0);
}

async function load() {
  try {
    const [schema, known] = await Promise.all([readSchema(), readFacts()]);
    facts = known;
    collect(schema);
    showList();
    show(Boolean(location.hash));
  } catch (error) {
    if (!(error instanceof Refused)) throw error;
    entry.replaceChildren(
      element("h1", {}, "Reference"),
      element("p", {}, `${error.message} Sign in to read the schema.`),
    );
  }
}

search.addEventListener("input", showList);
window.addEventListener("hashchange", () => show());
let reader = session.viewer?.id;
session.addEventListener("change", () => {
  // Visitors may see less of it.
  if (session.viewer?.id !== reader && entries.size === 0) load().catch(console.error);
  reader = session.viewer?.id;
});
await load();
