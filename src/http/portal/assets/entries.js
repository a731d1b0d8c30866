// @ts-check
/** Contents of the reference, for its pages and for Markdown. Nothing here requires a browser. */

/** @param {any} type `[Lead!]!` */
export const written = (type) =>
  type.kind === "NON_NULL"
    ? `${written(type.ofType)}!`
    : type.kind === "LIST"
      ? `[${written(type.ofType)}]`
      : type.name;

/** The type without list and non-null wrappers. @param {any} type @returns {string} */
export const named = (type) => (type.ofType ? named(type.ofType) : type.name);

/** The domain of an operation or type is the first one whose pattern matches the name. @type {[string, RegExp][]} */
const domains = [
  ["Webhooks and events", /webhook|event|subscription|changed/i],
  ["Workflows", /workflow|generation|escalation|tracker/i],
  ["Reports and exports", /report|export|portfolio/i],
  ["Integrations", /integration/i],
  ["Jobs", /jobs?$|jobtask|pausetask|resumetask/i],
  ["Agreements", /agreement|signing|signer/i],
  ["Payments", /payment|processor|charge|deposit|refund|card/i],
  ["Personalizations", /personalization|spec(category|element|option)/i],
  ["Deals", /reservation|offer|negotiation|fallout|unitholds?|promotion|lease/i],
  ["Buyers", /buyer|contact$|contacts|person$/i],
  ["Leads", /lead|task|appointment|phonecall|agent|contactmessage|openhouse/i],
  ["Inventory", /unit|lot|floorplan|siteplan|elevation|plans|inventory/i],
  ["Projects", /project|salesoffice|city|testimonial/i],
  ["Organizations", /organization|member|invite/i],
  ["Accounts", /.*/],
];
/** @param {string} name */
export const domainOf = (name) => /** @type {string} */ (domains.find(([, names]) => names.test(name))?.[0]);
export const domainNames = [
  "Projects",
  "Inventory",
  "Leads",
  "Buyers",
  "Deals",
  "Payments",
  "Personalizations",
  "Agreements",
  "Workflows",
  "Reports and exports",
  "Webhooks and events",
  "Integrations",
  "Organizations",
  "Accounts",
  "Jobs",
];

/**
 * Error codes that an operation can return, derived from its arguments.
 * @param {{ kind: string, name: string, about: any }} operation
 * @param {readonly { name: string }[] | undefined} inputFields those of its argument `input`, if it has one
 * @param {{ permissions: Record<string, string[]>, states: object, errors: readonly { code: string }[] }} facts
 */
export function codesOf({ kind, name, about }, inputFields, facts) {
  const isMutation = kind === "mutation";
  const fields = inputFields ?? about.args;
  const has = (/** @type {string} */ field) => fields.some((/** @type {any} */ one) => one.name === field);
  const isOpen = facts.permissions[name]?.every((one) => one === "nothing");
  return [
    ...(fields.length ? ["BAD_USER_INPUT"] : []),
    ...(isMutation && !isOpen ? ["UNAUTHENTICATED", "FORBIDDEN"] : []),
    ...(isMutation && fields.some((/** @type {any} */ one) => /^id$|Id$/.test(one.name))
      ? ["NOT_FOUND"]
      : []),
    ...(isMutation ? ["CONFLICT"] : []),
    ...(isMutation && stateNameOf(about, facts.states) && has("status") ? ["INVALID_TRANSITION"] : []),
    ...(isMutation && (has("unitId") || has("lotId")) ? ["INVENTORY_UNAVAILABLE"] : []),
    ...(has("expectedVersion") ? ["VERSION_MISMATCH"] : []),
    ...(has("idempotencyKey") ? ["IDEMPOTENCY_MISMATCH"] : []),
    ...(kind === "query" ? ["LIMIT_EXCEEDED"] : []),
    "RATE_LIMITED",
  ].filter((code) => facts.errors.some((one) => one.code === code));
}

/** The state machine of the result of an operation, or of a type. @param {any} about @param {object} states */
export function stateNameOf(about, states) {
  const name = about.type ? named(about.type) : about.name;
  const words = name.replaceAll(
    /(?<=[a-z])[A-Z]/g,
    (/** @type {string} */ letter) => ` ${letter.toLowerCase()}`,
  );
  return Object.hasOwn(states, words) ? words : undefined;
}

/** The first value at a path of a response; `*` is any element of a list. @param {any} data @param {string} path */
export function valueAt(data, path) {
  let values = [data];
  for (const part of path.split("."))
    values = values
      .flatMap((value) => (part === "*" ? (value ?? []) : [value?.[part]]))
      .filter((value) => value !== null && value !== undefined);
  return values[0];
}

/** The variables of an example, with values from the query that precedes it. @param {any} example @param {any} found */
export function filledVariables({ variables, needs }, found) {
  const values = structuredClone(variables ?? {});
  for (const [variable, path] of Object.entries(needs?.variables ?? {})) {
    const names = variable.split(".");
    const last = /** @type {string} */ (names.pop());
    names.reduce((part, name) => (part[name] ??= {}), values)[last] = valueAt(found, String(path)) ?? "";
  }
  return values;
}
