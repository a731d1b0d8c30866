import type { Person } from "./api.ts";

/** Creates a record by its operation and returns its id; as another person where one is named. */
export type Create = (field: string, input: Record<string, unknown>, person?: Person) => Promise<string>;

/** Creates records as this person. */
export function createIn(by: Person): Create {
  return async (field, input, person = by) => {
    const type = `${field[0]!.toUpperCase()}${field.slice(1)}Input`;
    const data = await person.get(`mutation ($input: ${type}!) { ${field}(input: $input) { id } }`, {
      input,
    });
    return data[field].id;
  };
}
