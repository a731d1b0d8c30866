/** Inputs that chance does not find: what the operation is about has to be in a state, or a text has a form of its own. */
import type { Payments } from "../harness/payments.ts";
import type { Recipe } from "./fuzzer.ts";

export function recipes(_world: Payments): Record<string, Recipe> {
  return {};
}
