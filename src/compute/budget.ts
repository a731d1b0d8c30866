/**
 * What the texts and conditions of organizations may cost to compute. Operations and memory are counted, so that the same step
 * fails everywhere or nowhere; times are the last resort.
 */
export const budgets = {
  /** Steps of evaluating one condition: operators, elements of lists, and a share for long texts. */
  operations: 100_000,
  /**
   * Characters and elements that all texts of one step make on their way, in total. So few that nothing of it is larger than the
   * 16 MB beyond its heap with which a thread can still be ended: a larger one ends the process.
   */
  memory: 500_000,
  /** Milliseconds of the processor for all texts of one step together; looked at between two tags or outputs. */
  textsMs: 500,
  /** Characters of all templates of one definition together. */
  definition: 1_000_000,
  /** Milliseconds of the processor after which a thread is ended that does not come back from one task, such as from a single filter. */
  taskMs: 2_000,
} as const;

/** A task costs more than its budget. The message is a sentence for whoever wrote the step. */
export class BudgetExceeded extends Error {
  constructor(message: string, options?: ErrorOptions) {
    super(message, options);
    this.name = "BudgetExceeded";
  }
}

/** For a task whose thread had to be ended, or ran out of memory. */
export const endedMessage = `The texts or conditions take more computing than a step may take (${budgets.taskMs / 1000} seconds): shorten them, or the lists that they go through.`;
