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
  /** Attackers at a time. */
  clients: number;
  /** How long they go on. */
  seconds: number;
  /** Turns of each client; as many as fit into the time when absent. */
  turns?: number;
  /**
   * How often the bystander asks, and whoever looks after the service, whether or not they were answered, in milliseconds. Every
   * 50 where absent, which is what quantiles need.
   */
  rhythmMs?: number;
}

export interface Figures {
  title: string;
  /** Of the attackers. */
  requests: number;
  turns: number;
  /** Why attacks did not work. */
  faults: string[];
  /** Milliseconds of the bystander's requests. */
  bystander: { p50: number; p99: number };
  /** Milliseconds. */
  healthz: { p99: number };
  /** Peak resident memory of the service and its processes without PostgreSQL, in bytes; undefined where nobody tells. */
  memory: number | undefined;
  /** What went wrong for the bystander, and for who looks after the service. */
  errors: string[];
}

/** After this long nobody waits for an answer. */
const patienceMs = 10_000;

const folder = join(import.meta.dirname, "attacks");

/** The names of all attacks. */
export const attackNames = (): string[] =>
  globSync("*.ts", { cwd: folder })
    .map((file) => basename(file, ".ts"))
    .toSorted();

/** Not the network of the attackers: all of 127/8 is this machine. */
const elsewhere = "127.0.0.9";

/** What a bystander asks for: a page as it stands behind the first view of a program. */
const smallQuery = "{ leads(first: 5) { id name status project { title } } }";

const quantile = (times: number[], share: number): number => {
  const sorted = times.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(share * sorted.length))] ?? Number.NaN;
};

/** Does the work on a fixed rhythm until it is told to stop, and notes how long each took and what went wrong. */
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
 * Plays one attack.
 * @param facts of the service that is attacked; see factsOf.
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
  // What is loaded on first use is no attacker's fault.
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
  const told = await done;
  clearTimeout(timer);
  await Promise.all([bystander.stop(), healthz.stop(), sampler.stop()]);
  await attackers.terminate();
  if ("ready" in told) throw new Error("The attackers said twice that they are ready.");
  return {
    title: attack.title,
    ...told,
    bystander: { p50: quantile(bystander.times, 0.5), p99: quantile(bystander.times, 0.99) },
    healthz: { p99: quantile(healthz.times, 0.99) },
    memory,
    errors: [...bystander.errors, ...healthz.errors.map((error) => `/healthz: ${error}`)],
  };
}
