/** An API process of test/http/apiProcesses.test.ts: how it behaves is in the configuration that it receives. */
import cluster from "node:cluster";
import { requestPart, servePart } from "../../src/http/apiProcesses.ts";
import type { Behaviour } from "./apiProcesses.test.ts";

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
