// @ts-check
/** What the service says about its schema, and what the guides say beyond it. */
import { ask, Refused } from "./session.js";

/** The introspection of the schema. @throws Refused where strangers are not told */
export async function readSchema() {
  const { data, errors } = await ask({ documentId: "portal:Schema" });
  if (errors) throw new Refused(errors);
  return data;
}

export const readFacts = async () => (await fetch("/portal/facts.json")).json();

/** @param {any} type `[Lead!]!` */
export const written = (type) =>
  type.kind === "NON_NULL"
    ? `${written(type.ofType)}!`
    : type.kind === "LIST"
      ? `[${written(type.ofType)}]`
      : type.name;

/** The type within lists and the like. @param {any} type @returns {string} */
export const named = (type) => (type.ofType ? named(type.ofType) : type.name);

/** The first that a name matches says where it belongs. @type {[string, RegExp][]} */
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
