/** The mutation score of all mutants, estimated from those that were tried. */

/** Some of many, of which some were detected. */
export interface Part {
  tried: number;
  detected: number;
}

export interface Tried {
  /** Mutants that unit tests execute: all, those that were tried with these, and those that these detected. */
  executed: Part & { all: number };
  /** Of the rest of those that were tried, these were tried with database tests. */
  left: Part;
  /** Mutants that no unit test executes: all, and those that were tried with database tests. */
  unexecuted: Part & { all: number };
}

/**
 * The share of detected mutants, and the half of its 95 % confidence interval. Both kinds of mutants are estimated on their own: among those that unit
 * tests execute, a mutant is detected unless both stages miss it.
 */
export function mutationScore({ executed, left, unexecuted }: Tried): { score: number; margin: number } {
  const all = executed.all + unexecuted.all;
  const missedByUnit = 1 - share(executed);
  const missedByDatabase = 1 - share(left);
  const ofExecuted = 1 - missedByUnit * missedByDatabase;
  const varianceOfExecuted =
    missedByDatabase ** 2 * variance(executed) + (missedByUnit > 0 ? missedByUnit ** 2 * variance(left) : 0);
  const weight = executed.all / all;
  return {
    score: weight * ofExecuted + (1 - weight) * share(unexecuted),
    margin:
      1.96 *
      Math.sqrt(
        weight ** 2 * varianceOfExecuted +
          (unexecuted.all > 0 ? (1 - weight) ** 2 * variance(unexecuted) : 0),
      ),
  };
}

const share = ({ tried, detected }: Part): number => (tried > 0 ? detected / tried : 0);

/** Of the share, by Agresti and Coull: not zero where all of a few have the same outcome. */
function variance({ tried, detected }: Part): number {
  const likely = (detected + 2) / (tried + 4);
  return (likely * (1 - likely)) / (tried + 4);
}
