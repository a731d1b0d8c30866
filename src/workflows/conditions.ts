/** Conditions of workflows: JSON Logic, with no more operators than the database lets through. */
import { LogicEngine } from "json-logic-engine";

const engine = new LogicEngine(undefined, {
  maxDepth: 100,
  maxArrayLength: 10_000,
  maxStringLength: 100_000,
});
engine.addMethod("secondsSince", ([time]: unknown[]) => {
  const at = typeof time === "string" ? Date.parse(time) : Number.NaN;
  return Number.isNaN(at) ? null : (Date.now() - at) / 1000;
});

/** Whether a condition holds of the data; one that cannot be computed, such as a division by zero, does not. */
export function holds(condition: unknown, data: object): boolean {
  try {
    return Boolean(engine.truthy(engine.run(condition, data)));
  } catch {
    return false;
  }
}
