/** Conditions of workflows: JSON Logic, with no more operators than the database lets through. */
import { LogicEngine } from "json-logic-engine";

const engine = new LogicEngine(undefined, {
  maxDepth: 100,
  maxArrayLength: 10_000,
  maxStringLength: 100_000,
});
// No number where there is no time: no comparison with it holds.
engine.addMethod("secondsSince", ([time]: unknown[]) =>
  typeof time === "string" ? (Date.now() - Date.parse(time)) / 1000 : Number.NaN,
);
// As JSON Logic has it; the library only looks whether there is such a member, which all records have.
engine.addMethod("missing", (names: unknown[], data: unknown) =>
  names.filter((name) => [null, undefined, ""].includes(engine.run({ var: name }, data) as string)),
);

/** Whether a condition holds of the data; one that cannot be computed, such as a division by zero, does not. */
export function holds(condition: unknown, data: object): boolean {
  try {
    return Boolean(engine.truthy(engine.run(condition, data)));
  } catch {
    return false;
  }
}
