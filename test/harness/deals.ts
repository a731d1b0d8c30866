import type { Person } from "./api.ts";
import { createIn } from "./records.ts";

/** Makes a purchase, without a home unless one is given, over the API, and gives its id. */
export function createBuyer(
  person: Person,
  project: { id: string },
  input: Record<string, unknown> = {},
): Promise<string> {
  return createIn(person)("createBuyer", {
    projectId: project.id,
    legalName: "Bea Buyer",
    price: "400000.00",
    ...input,
  });
}
