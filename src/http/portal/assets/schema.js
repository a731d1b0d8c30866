// @ts-check
/** What the service says about its schema, and what the guides say beyond it. */
import { ask, Refused } from "./session.js";

const ofType = (/** @type {number} */ depth) =>
  depth === 0 ? "kind name" : `kind name ofType { ${ofType(depth - 1)} }`;
const itsType = `type { ${ofType(5)} }`;
const value = `name description ${itsType} defaultValue isDeprecated deprecationReason`;
const query = `query Schema { __schema { queryType { name } mutationType { name } subscriptionType { name }
  directives { name description locations args { ${value} } }
  types { kind name description
    fields(includeDeprecated: true) { name description ${itsType} isDeprecated deprecationReason args(includeDeprecated: true) { ${value} } }
    inputFields(includeDeprecated: true) { ${value} }
    enumValues(includeDeprecated: true) { name description isDeprecated deprecationReason }
    interfaces { ${ofType(3)} } possibleTypes { ${ofType(1)} } } } }`;

/** The introspection of the schema. @throws Refused where strangers are not told */
export async function readSchema() {
  const { data, errors } = await ask({ query });
  if (errors) throw new Refused(errors);
  return data;
}

export const readFacts = async () => (await fetch("/portal/facts.json")).json();
