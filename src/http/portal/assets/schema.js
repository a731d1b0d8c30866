// @ts-check
/** The introspection of the schema, and additional facts from the guides. */
import { ask, Refused } from "./session.js";

/** The introspection of the schema. @throws Refused if visitors may not read it */
export async function readSchema() {
  const { data, errors } = await ask({ documentId: "portal:Schema" });
  if (errors) throw new Refused(errors);
  return data;
}

export const readFacts = async () => (await fetch("/portal/facts.json")).json();
