/**
 * Limits on computing the texts and conditions of organizations. Operations and memory are counted, so that the same step fails on every
 * machine or on none; time limits are the last resort.
 */
export const budgets = {
  /** Steps of evaluating one condition: operators, elements of lists, and a share for long texts. */
  operations: 100_000,
  /**
   * Characters and elements that all texts of one step may create, in total. Small enough that no value exceeds the 16 MB outside its heap
   * with which a thread can still be terminated; a larger one ends the process.
   */
  memory: 500_000,
  /** Milliseconds of CPU time for all texts of one step together; checked between two tags or outputs. */
  textsMs: 500,
  /** Characters of all templates of one definition together. */
  definition: 1_000_000,
  /** Milliseconds of CPU time after which a thread is terminated that does not finish a task, such as a single filter. */
  taskMs: 2_000,
} as const;

/** A task exceeds its budget. The message is a sentence for the author of the step. */
export class BudgetExceeded extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "BudgetExceeded";
  }
}

/** The message for a task whose thread was terminated, or ran out of memory. */
export const endedMessage = `The texts or conditions take more computing than a step may take (${budgets.taskMs / 1000} seconds): shorten them, or the lists that they go through.`;
