/** Runs an attack on a running service, and measures its effect on another user. */
import { once } from "node:events";
import { globSync } from "node:fs";
import { basename, join } from "node:path";
import { Worker } from "node:worker_threads";
import type { Attack } from "./attack.ts";
import type { AttackersData, AttackersMessage } from "./attackers.ts";
import { residentMemory } from "./memory.ts";
import { openWorld, type Facts } from "./world.ts";

export interface PlayOptions {
  /** Number of concurrent attackers. */
  clients: number;
  /** Duration in milliseconds. */
  seconds: number;
  /** Number of turns per client. Default: until the time limit. */
  turns?: number;
  /**
   * Milliseconds between requests of the bystander and between health checks, whether or not these were answered.
   * Default: 50, which quantiles require.
   */
  rhythmMs?: number;
}

export interface Figures {
  title: string;
  /** Of the attackers. */
  requests: number;
  turns: number;
  /** Reasons why attacks did not work. */
  faults: string[];
  /** Milliseconds of the bystander's requests. */
  bystander: { p50: number; p99: number };
  /** Milliseconds. */
  healthz: { p99: number };
  /**
   * Peak resident memory of the service and its processes without PostgreSQL, in bytes; undefined if the system does
   * not report it.
   */
  memory: number | undefined;
  /** Errors of the bystander's requests and of health checks. */
  errors: string[];
}

/** Timeout of requests, in milliseconds. */
const patienceMs = 10_000;

const folder = join(import.meta.dirname, "attacks");

/** The names of all attacks. */
export const attackNames = (): string[] =>
  globSync("*.ts", { cwd: folder })
    .map((file) => basename(file, ".ts"))
    .toSorted();

/** An address outside of the attackers' network; all of 127/8 is local. */
const elsewhere = "127.0.0.9";

/** The query of the bystander: a page as in the first view of an application. */
const smallQuery = "{ leads(first: 5) { id name status project { title } } }";

const quantile = (times: number[], share: number): number => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
};

/** Repeats the work at a fixed rate until it is stopped, and records durations and errors. */
function onRhythm(rhythmMs: number, work: (signal: AbortSignal) => Promise<void>) {
  const times: number[] = [];
  const errors: string[] = [];
  const underway = new Set<Promise<void>>();
  const one = async () => {
    const began = performance.now();
    try {
      await work(AbortSignal.timeout(patienceMs));
    } catch (error) {
      errors.push((error as Error).name === "AbortError" ? "no answer" : (error as Error).message);
    }
    times.push(performance.now() - began);
  };
  const begin = () => {
    const asking = one().finally(() => underway.delete(asking));
    underway.add(asking);
  };
  begin();
  const timer = setInterval(begin, rhythmMs);
  return {
    times,
    errors,
    async stop() {
      clearInterval(timer);
      await Promise.all(underway);
    },
  };
}

/**
 * Runs one attack.
 * @param facts about the attacked service; see factsOf
 */
export async function play(
  name: string,
  facts: Facts,
  { clients, seconds, turns, rhythmMs = 50 }: PlayOptions,
): Promise<Figures> {
  const file = join(folder, `${name}.ts`);
  const attack = ((await import(file)) as { default: Attack }).default;
  await using world = openWorld(facts, undefined, elsewhere);
  const asks = attack.bystander ?? (async () => void (await world.get(world.bystander, smallQuery)));
  // A warm-up, because lazy loading is not caused by attackers.
  for (let n = 0; n < 3; n += 1) await asks(world);

  const data: AttackersData = { file, facts, clients, ...(turns !== undefined && { turns }) };
  const attackers = new Worker(new URL("attackers.ts", import.meta.url), { workerData: data });
  const message = async () => (await once(attackers, "message"))[0] as AttackersMessage;
  await message();

  let memory = residentMemory(facts.pid);
  const sampler = onRhythm(rhythmMs, async () => {
    const now = residentMemory(facts.pid);
    if (now !== undefined) memory = Math.max(memory ?? 0, now);
  });
  const bystander = onRhythm(rhythmMs, async (signal) => {
    const late = new Promise<never>((_, fail) =>
      signal.addEventListener("abort", () => fail(new Error("no answer")), { once: true }),
    );
    await Promise.race([asks(world), late]);
  });
  const healthz = onRhythm(rhythmMs, async (signal) => {
    const { status } = await world.request("/healthz", { signal });
    if (status !== 200) throw new Error(`/healthz answered ${status}`);
  });
  const done = message();
  attackers.postMessage("begin");
  // oxlint-disable-next-line no-restricted-globals -- the time that the attack has
  const timer = setTimeout(() => attackers.postMessage("end"), seconds * 1000);
  const result = await done;
  clearTimeout(timer);
  await Promise.all([bystander.stop(), healthz.stop(), sampler.stop()]);
  await attackers.terminate();
  if ("ready" in result) throw new Error("The attackers said twice that they are ready.");
  return {
    title: attack.title,
    ...result,
    bystander: { p50: quantile(bystander.times, 0.5), p99: quantile(bystander.times, 0.99) },
    healthz: { p99: quantile(healthz.times, 0.99) },
    memory,
    errors: [...bystander.errors, ...healthz.errors.map((error) => `/healthz: ${error}`)],
  };
}
