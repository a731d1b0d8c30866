/** An API process of test/http/apiProcesses.test.ts: how it behaves is in the configuration that it receives. */
import cluster from "node:cluster";
import { requestPart, servePart } from "../../src/http/apiProcesses.ts";

/** How processes behave, by their ids. */
export interface Behaviour {
  /** Those that exit before they are ready: with code 3, or by a signal. */
  exits?: ReadonlyMap<number, "code" | "signal">;
  /** Those that never answer a question for metrics. */
  isSilent?: ReadonlySet<number>;
  /** A value that JSON cannot represent. */
  marks?: Date;
}

const { config, processes, ticketKeys } = (await requestPart())!;
const { exits, isSilent, marks } = config as unknown as Behaviour;
const { id } = cluster.worker!;
if (exits?.has(id)) {
  if (exits.get(id) === "signal") process.kill(process.pid, "SIGKILL");
  process.exit(3);
}
servePart(() =>
  isSilent?.has(id)
    ? new Promise(() => {})
    : Promise.resolve([{ pid: process.pid, args: process.argv.slice(2), marks, processes, ticketKeys }]),
);
