/** How long and how large the comparison is; each by a variable of the environment. */
import { sized, smoke, unlessSmoke } from "../data/size.ts";

const number = (name: string, usual: number) => (smoke ? usual : Number(process.env[name] ?? usual));

/** Leads in all: BENCH_SIZE, 10,000 where omitted. */
export const LEADS = sized(10_000, 100);
/** Times that each contestant has its turn: BENCH_ROUNDS. */
export const ROUNDS = number("BENCH_ROUNDS", unlessSmoke(3, 1));
/** Of each turn: BENCH_SECONDS. */
export const SECONDS = number("BENCH_SECONDS", unlessSmoke(3, 0.01));
/** At once: BENCH_CONNECTIONS. */
export const CONNECTIONS = number("BENCH_CONNECTIONS", unlessSmoke(16, 2));
/** Connections to the database of each contestant. */
export const POOL_SIZE = 10;

const list = (name: string) =>
  (process.env[name] ?? "")
    .split(",")
    .map((part) => part.trim())
    .filter(Boolean);
/** Names of contestants and of work to do, where not all are wanted: BENCH_CONTESTANTS and BENCH_WORK, separated by commas. */
export const only = { contestants: list("BENCH_CONTESTANTS"), work: list("BENCH_WORK") };
