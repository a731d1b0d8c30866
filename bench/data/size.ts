/**
 * How large a benchmark is. `BENCH_SIZE` sets the number of what it has many of, each file says which; `BENCH_SIZE=smoke` makes all
 * of it so small that a run only shows that the benchmark works, as the tests do with every one.
 */
export const smoke = process.env.BENCH_SIZE === "smoke";

/** The number of what the benchmark has many of. */
export const sized = (usual: number, tiny: number): number =>
  smoke ? tiny : Number(process.env.BENCH_SIZE ?? usual);

/** A number that does not grow with the size. */
export const unlessSmoke = <T>(usual: T, tiny: T): T => (smoke ? tiny : usual);
