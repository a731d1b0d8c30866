import type { Person } from "./api.ts";

/** The document of a mutation with the variable `input`, and a selection in braces, if any. */
export function mutationOf(field: string, selection = "{ id }"): string {
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
  return `mutation ($input: ${type}!) { ${field}(input: $input) ${selection} }`;
}

/** Creates a record with its mutation, as the given person, and returns its id. */
export type Create = (field: string, input: Record<string, unknown>, person?: Person) => Promise<string>;

/** Creates records as this person. */
export function createIn(by: Person): Create {
  return async (field, input, person = by) => (await person.get(mutationOf(field), { input }))[field].id;
}
