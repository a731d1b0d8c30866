/**
 * The size of a benchmark. `BENCH_SIZE` sets a number that the header of each benchmark describes. With
 * `BENCH_SIZE=smoke`, everything is so small that a run only shows that the benchmark works; the tests run all of
 * them in this way.
 */
export const smoke = process.env.BENCH_SIZE === "smoke";

/** The number that BENCH_SIZE sets. */
export const sized = (usual: number, tiny: number): number =>
  smoke ? tiny : Number(process.env.BENCH_SIZE ?? usual);

/** A number that does not depend on the size. */
export const unlessSmoke = <T>(usual: T, tiny: T): T => (smoke ? tiny : usual);
