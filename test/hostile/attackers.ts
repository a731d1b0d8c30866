/**
 * The thread of the attackers, so that their work does not delay the measuring process. It has the lowest priority if
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
  /** Number of turns per client. Default: until the time limit. */
  turns?: number;
}

/** Messages of the thread: ready, then the result. */
export type AttackersMessage = { ready: true } | { requests: number; turns: number; faults: string[] };

const { file, facts, clients, turns: most = Infinity } = workerData as AttackersData;
/** Whether times are measured. With a given number of turns, each only has to be carried out. */
const isMeasured = most === Infinity;
// Real attackers have machines of their own; here they only use what the service and its database leave.
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
      // One error per client is reported; a service that has exited does not answer anybody.
      return;
    }
  }
}

const received = new Promise<"begin" | "end">((done) => {
  parentPort!.on("message", (message: "begin" | "end") => {
    if (message === "end") ending.abort();
    done(message);
  });
});
say({ ready: true });
if ((await received) === "begin") await Promise.all(Array.from({ length: clients }, client));
say({ requests: world.requests - before, turns, faults });
parentPort!.close();
