// @ts-check
/**
 * The explorer: an operation with its variables and headers, its response and cost, and the events that occur
 * meanwhile.
 */
import { known } from "./portal.js";
import { createEditor, operationsOf } from "./editor.js";
import { domainNames, filledVariables, valueAt } from "./entries.js";
import { followSession, showEvent } from "./feed.js";
import { readFacts, readSchema } from "./schema.js";
import { act, ask, element, Refused, session, tell } from "./session.js";
import { codeFor } from "./snippets.js";

await known;

const at = (/** @type {string} */ id) => /** @type {any} */ (document.getElementById(id));
const kept = "plat.explorer";
const run = () => void act(execute);

const documentEditor = createEditor({ parent: at("document"), label: "Operation", language: "graphql", run });
const variables = createEditor({ parent: at("variables"), label: "Variables", language: "json", run });
const headers = createEditor({ parent: at("headers"), label: "Headers", language: "json", run });
const result = createEditor({ parent: at("result"), label: "Answer", language: "json", readOnly: true });

const firstDocument = `# Ctrl Enter runs it.
query PublicProjects {
  publicProjects(first: 10) {
    id
    title
    status
    city
  }
}
`;

function open({ text = firstDocument, values = "{}" } = {}) {
  documentEditor.text = text;
  variables.text = values;
  readOperations();
}

/** Lists the operations of a document, for a choice if there are several. */
function readOperations() {
  /** @type {{ name?: string }[]} */
  let operations = [];
  try {
    operations = operationsOf(documentEditor.text);
  } catch {
    // The editor shows the error.
  }
  const names = operations.flatMap(({ name }) => (name ? [name] : []));
  const chosen = at("operation").value;
  at("operation").replaceChildren(...names.map((name) => new Option(name, name)));
  if (names.includes(chosen)) at("operation").value = chosen;
  at("operation").disabled = names.length < 2;
}

/** @param {string} text @param {string} what */
function jsonOf(text, what) {
  try {
    return text.trim() ? JSON.parse(text) : {};
  } catch (error) {
    throw new Error(`${what}: ${/** @type {Error} */ (error).message}`, { cause: error });
  }
}

function given() {
  readOperations();
  const operationName = at("operation").value;
  return {
    query: documentEditor.text,
    variables: jsonOf(variables.text, "Variables"),
    ...(operationName && { operationName }),
  };
}

async function execute() {
  const body = given();
  const extra = jsonOf(headers.text, "Headers");
  sessionStorage.setItem(kept, JSON.stringify({ text: documentEditor.text, values: variables.text }));
  const began = performance.now();
  at("cost").textContent = "Asking …";
  const { extensions, ...answer } = mayReadSql(extra)
    ? await askWithSql(body, extra)
    : await ask(body, extra);
  const took = Math.round(performance.now() - began);
  result.text = JSON.stringify(answer, null, 2);
  const { cost } = extensions ?? {};
  at("cost").textContent = [
    `${answer.errors ? "Refused" : "Answered"} in ${took} ms`,
    ...(cost
      ? [
          `cost ${cost.requested} of ${cost.limit}`,
          `planning ${cost.planning.requested} of ${cost.planning.limit}`,
          `${cost.bytes.read} of ${cost.bytes.limit} bytes read`,
        ]
      : []),
  ].join(" · ");
}

/**
 * Whether the user that the operation is sent as may read its SQL statements.
 * @param {Record<string, string>} [extra]
 */
function mayReadSql(extra = {}) {
  const readers = at("sql-part")?.dataset.readers;
  const isOther = Object.keys(extra).some((name) => name.toLowerCase() === "authorization");
  return readers === "everyone" || (readers === "operators" && session.viewer?.isOperator && !isOther);
}

/**
 * Sends an operation, and shows its SQL statements beside the response. @param {any} body @param {Record<string,
 * string>} extra
 */
async function askWithSql(body, extra) {
  const { answer, statements, more, ...refusal } = await ask(
    body,
    extra,
    `/explorer/sql${at("plans").checked ? "?plans=true" : ""}`,
  );
  at("statements").replaceChildren(...(statements ?? []).map(statementShown));
  const rows = (statements ?? []).reduce(
    (/** @type {number} */ sum, /** @type {any} */ one) => sum + one.rows,
    0,
  );
  const ms = (statements ?? []).reduce(
    (/** @type {number} */ sum, /** @type {any} */ one) => sum + one.ms,
    0,
  );
  const number = (statements ?? []).length + (more ?? 0);
  at("sql-state").textContent =
    `${number} ${number === 1 ? "statement" : "statements"} · ${ms.toFixed(1)} ms · rows: ${rows}` +
    (more ? ` · the first ${statements.length} are shown` : "");
  return answer ?? refusal;
}

/** @param {any} statement */
function statementShown({ text, values, ms, rows, plan }) {
  const block = (/** @type {string} */ label, /** @type {string} */ content) =>
    element("pre", { tabIndex: 0, ariaLabel: label }, element("code", {}, content));
  return element(
    "li",
    {},
    element("p", { className: "quiet" }, `${ms} ms · ${rows === null ? "refused" : `rows: ${rows}`}`),
    block("Statement", text),
    values?.length > 0 && block("Values", JSON.stringify(values)),
    plan !== undefined && block("Plan", plan),
  );
}

/** Opens an example, after querying the ids that it needs. @param {any} example */
async function openExample(example) {
  const values = structuredClone(example.variables ?? {});
  open({ text: example.document, values: JSON.stringify(values, null, 2) });
  if (!example.needs) return;
  if (!session.viewer) return tell("Sign in: this example is about records of the demo.");
  const { data, errors } = await ask({ query: example.needs.query });
  if (errors) throw new Refused(errors);
  const filled = filledVariables(example, data);
  variables.text = JSON.stringify(filled, null, 2);
  if (Object.values(example.needs.variables).some((path) => valueAt(data, String(path)) === undefined))
    tell("There is no such record yet: create one first, or put an id into the variables.");
}

const facts = await readFacts();
for (const domain of domainNames) {
  const some = facts.examples.filter((/** @type {any} */ example) => example.domain === domain);
  if (some.length === 0) continue;
  at("examples").append(
    element(
      "details",
      {},
      element("summary", {}, domain),
      element(
        "ul",
        {},
        ...some.map((/** @type {any} */ example) =>
          element(
            "li",
            {},
            element(
              "button",
              { type: "button", className: "plain", onclick: () => act(() => openExample(example)) },
              example.title,
            ),
          ),
        ),
      ),
    ),
  );
}

at("run").addEventListener("click", run);
at("document").addEventListener("focusout", readOperations);
at("code-part").addEventListener("toggle", () =>
  act(async () => at("code").replaceChildren(codeFor(given()))),
);

open(JSON.parse(sessionStorage.getItem(kept) ?? "{}"));
headers.text = "{}";
const wanted = facts.examples.find(({ name = "" }) => `#${name}` === location.hash);
if (wanted) await act(() => openExample(wanted));
else at("examples").querySelector("details").open = true;

followSession({
  idle: "Sign in to see what happens in your organization.",
  onState: (text) => (at("feed-state").textContent = text),
  onEvent: (event) => showEvent(at("events"), event),
});

let isKnown = false;
async function learn() {
  if (isKnown) return;
  try {
    documentEditor.setSchema(await readSchema());
    isKnown = true;
    at("document").dataset.schema = "known";
  } catch (error) {
    // Visitors may not read the schema; signed-in users may.
    if (!(error instanceof Refused)) throw error;
  }
}
function showSqlPart() {
  const part = at("sql-part");
  if (!part) return;
  part.hidden = !mayReadSql();
  at("statements").replaceChildren();
}
session.addEventListener("change", showSqlPart);
session.addEventListener("change", () => void learn());
showSqlPart();
await learn();
