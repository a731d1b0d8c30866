/** Duration and size of the comparison, set by environment variables. */
import { sized, smoke, unlessSmoke } from "../data/size.ts";

const number = (name: string, usual: number) => (smoke ? usual : Number(process.env[name] ?? usual));

/** Total number of leads: BENCH_SIZE. Default: 10,000. */
export const LEADS = sized(10_000, 100);
/** Number of rounds: BENCH_ROUNDS. */
export const ROUNDS = number("BENCH_ROUNDS", unlessSmoke(3, 1));
/** Seconds per contestant and round: BENCH_SECONDS. */
export const SECONDS = number("BENCH_SECONDS", unlessSmoke(3, 0.01));
/** Concurrent connections: BENCH_CONNECTIONS. */
export const CONNECTIONS = number("BENCH_CONNECTIONS", unlessSmoke(16, 2));
/** Database connections of each contestant. */
export const POOL_SIZE = 10;

const list = (name: string) =>
  (process.env[name] ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
/**
 * Names of the contestants and kinds of work to run, separated by commas: BENCH_CONTESTANTS and BENCH_WORK. Default:
 * all.
 */
export const only = { contestants: list("BENCH_CONTESTANTS"), work: list("BENCH_WORK") };
