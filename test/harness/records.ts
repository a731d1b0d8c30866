import type { Person } from "./api.ts";

/** The document of an operation by its name: its variable is the input; what is selected stands in braces, if there is anything. */
export function mutationOf(field: string, selection = "{ id }"): string {
  const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
  return `mutation ($input: ${type}!) { ${field}(input: $input) ${selection} }`;
}

/** Creates a record by its operation and returns its id; as another person where one is named. */
export type Create = (field: string, input: Record<string, unknown>, person?: Person) => Promise<string>;

/** Creates records as this person. */
export function createIn(by: Person): Create {
  return async (field, input, person = by) => (await person.get(mutationOf(field), { input }))[field].id;
}
