/**
 * Conditions of workflows: JSON Logic, with only the operators that the database accepts. Loaded by the threads of src/compute; none of it
 * runs on the event loop.
 */
import { LogicEngine } from "json-logic-engine";
import { BudgetExceeded, budgets } from "./budget.ts";

/** Counts work: each operator, each element that is visited, and long values by their length. */
class CountingEngine extends LogicEngine {
  left = 0;

  override run(logic: unknown, data?: unknown, options?: object): unknown {
    this.spend(1);
    const result: unknown = super.run(logic, data, options);
    if (typeof result === "string") this.spend(result.length >> 8);
    else if (Array.isArray(result)) this.spend(result.length >> 3);
    return result;
  }

  private spend(operations: number): void {
    this.left -= operations;
    if (this.left < 0)
      throw new BudgetExceeded(
        `The condition takes more than ${budgets.operations.toLocaleString("en")} operations: shorten the lists that it goes through.`,
      );
  }
}

const engine = new CountingEngine(undefined, {
  maxDepth: 100,
  maxArrayLength: 10_000,
  maxStringLength: 100_000,
  // Code that the library compiles does not call `run`, which counts operations.
  disableInterpretedOptimization: true,
  disableInline: true,
});
// Not a number if there is no time, so that no comparison with it is true.
engine.addMethod("secondsSince", ([time]: unknown[]) =>
  typeof time === "string" ? (Date.now() - Date.parse(time)) / 1000 : Number.NaN,
);
// As JSON Logic defines it; the library only checks whether the key exists, which it does in all records.
engine.addMethod("missing", (names: unknown[], data: unknown) =>
  names.filter((name) => [null, undefined, ""].includes(engine.run({ var: name }, data) as string)),
);

/**
 * Whether a condition is true for the data; one that cannot be evaluated, such as a division by zero, is false.
 * @throws BudgetExceeded
 */
export function holds(condition: unknown, data: object): boolean {
  engine.left = budgets.operations;
  try {
    return Boolean(engine.truthy(engine.run(condition, data)));
  } catch (error) {
    if (engine.left < 0) throw error;
    return false;
  }
}
