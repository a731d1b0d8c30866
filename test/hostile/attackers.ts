/**
 * The thread of the attackers, so that what they do takes no time of the process that measures; of the lowest priority where
 * threads have one (Linux). Started by play.ts.
 */
import { parentPort, workerData } from "node:worker_threads";
import { lowerPriority } from "../../src/base/priority.ts";
import type { Attack } from "./attack.ts";
import { openWorld, type Facts } from "./world.ts";

export interface AttackersData {
  /** The file of the attack. */
  file: string;
  facts: Facts;
  clients: number;
  /** Turns of each client; as many as fit into the time when absent. */
  turns?: number;
}

/** From the thread: ready to begin, then what was done. */
export type AttackersMessage = { ready: true } | { requests: number; turns: number; faults: string[] };

const { file, facts, clients, turns: most = Infinity } = workerData as AttackersData;
/** Whether somebody reads the figures: with a number of turns, what counts is that each is carried out. */
const isMeasured = most === Infinity;
// Attackers have machines of their own; here they take what the service and its database leave.
if (isMeasured) lowerPriority(19);

const { default: attack } = (await import(file)) as { default: Attack };
const ending = new AbortController();
const { signal } = ending;
await using world = openWorld(facts, signal);
const say = (message: AttackersMessage) => parentPort!.postMessage(message);

await attack.prepare?.(world, isMeasured ? 3 : 1);
const before = world.requests;
let turns = 0;
const faults: string[] = [];

async function client(): Promise<void> {
  for (let turn = 0; turn < most && !signal.aborted; turn += 1) {
    try {
      await attack.play(world, signal);
      turns += 1;
    } catch (error) {
      if (signal.aborted) return;
      faults.push(String((error as Error).stack ?? error));
      // One fault of each client is told; a service that is gone answers nobody.
      return;
    }
  }
}

const told = new Promise<"begin" | "end">((done) => {
  parentPort!.on("message", (message: "begin" | "end") => {
    if (message === "end") ending.abort();
    done(message);
  });
});
say({ ready: true });
if ((await told) === "begin") await Promise.all(Array.from({ length: clients }, client));
say({ requests: world.requests - before, turns, faults });
parentPort!.close();
