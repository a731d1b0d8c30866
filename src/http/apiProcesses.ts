/**
 * The API in several processes on one port (API_PROCESSES). The first process does everything else: database,
 * migrations, background work, metrics and probes. It starts the others, distributes connections round-robin,
 * restarts a process that exits with growing back-off, and stops them with itself. Messages to them, including
 * secrets, use the IPC channel, never the environment.
 */
import cluster, { type Worker } from "node:cluster";
import { randomBytes } from "node:crypto";
import { once } from "node:events";
import type { ServiceConfig } from "./address.ts";
import { backoff } from "../base/backoff.ts";
import type { Logger } from "../base/log.ts";

/** Metrics of one process, as prom-client represents them. */
export type MetricValues = object[];

/** Message from the first process to an API process. */
export interface Part {
  readonly config: ServiceConfig;
  /** Number of processes that share the port. */
  readonly processes: number;
  /** TLS session ticket keys: a returning client may reach another process. */
  readonly ticketKeys: Buffer;
}

type ToPart = { part: Part } | { metrics: number };
type FromPart = { asks: "part" } | { ready: true } | { metrics: number; values: MetricValues };

/** Time limit for the metrics of a process, in milliseconds. */
const METRICS_MS = 1_000;
/**
 * Back-off before a restart, in milliseconds; a process that was ready for as long counts as started successfully.
 */
const FIRST_PAUSE_MS = 500;
const LONGEST_PAUSE_MS = 30_000;

/** Requests the role of this process from the first one; undefined in the first process, or if there is only one. */
export async function requestPart(): Promise<Part | undefined> {
  if (!cluster.isWorker) return undefined;
  const received = once(process, "message") as Promise<[{ part: Part }]>;
  process.send!({ asks: "part" } satisfies FromPart);
  const [{ part }] = await received;
  return part;
}

/** Tells the first process that this one serves requests, and sends it metrics on request. */
export function servePart(values: () => Promise<MetricValues>): void {
  process.on("message", (message: ToPart) => {
    if (!("metrics" in message)) return;
    values()
      .then((found) => process.send?.({ metrics: message.metrics, values: found } satisfies FromPart))
      .catch(() => {});
  });
  process.send!({ ready: true } satisfies FromPart);
}

export interface ApiProcesses {
  /** Whether all processes are ready. */
  isWhole(): boolean;
  /** Metrics of the processes that answer within a second. */
  metrics(): Promise<MetricValues[]>;
  /** Stops all processes gracefully and waits until they have exited. */
  stop(): Promise<void>;
}

/**
 * Starts the processes and waits until all are ready.
 * @param options.entry the module that they run
 * @throws Error if one of them exits before it is ready; the others are stopped
 */
export async function startApiProcesses(options: {
  entry: string;
  config: ServiceConfig;
  processes: number;
  log: Logger;
}): Promise<ApiProcesses> {
  const { entry, config, processes, log } = options;
  const part: Part = { config, processes, ticketKeys: randomBytes(48) };
  const ready = new Set<Worker>();
  const pending = new Map<number, (values: MetricValues) => void>();
  const pauses = new Set<NodeJS.Timeout>();
  let asks = 0;
  let isStopping = false;
  // Configuration values are not all representable in JSON.
  cluster.setupPrimary({ exec: entry, args: ["--api-only"], serialization: "advanced" });

  const start = (pause: ReturnType<typeof backoff>, first?: PromiseWithResolvers<void>): void => {
    const worker = cluster.fork();
    let readyAt: number | undefined;
    worker.on("message", (message: FromPart) => {
      if ("asks" in message) worker.send({ part } satisfies ToPart);
      else if ("metrics" in message) pending.get(message.metrics)?.(message.values);
      else {
        readyAt = performance.now();
        ready.add(worker);
        first?.resolve();
      }
    });
    worker.on("error", (error) =>
      log.warn({ event: "api_process.channel", err: error }, "A message to an API process was lost."),
    );
    worker.once("exit", (code, signal) => {
      ready.delete(worker);
      first?.reject(new Error(`A process of the API ended before it was ready (${signal ?? code}).`));
      if (isStopping || (first && readyAt === undefined)) return;
      if (readyAt !== undefined && performance.now() - readyAt > LONGEST_PAUSE_MS) pause.reset();
      const pauseMs = Math.round(pause.pause());
      log.error(
        { event: "api_process.ended", pid: worker.process.pid, code, signal, pauseMs },
        "An API process ended; starting another one.",
      );
      const timer = setTimeout(() => {
        pauses.delete(timer);
        start(pause);
      }, pauseMs);
      pauses.add(timer);
    });
  };

  const stop = async (): Promise<void> => {
    isStopping = true;
    for (const timer of pauses) clearTimeout(timer);
    const workers = Object.values(cluster.workers ?? {}).filter((worker) => worker !== undefined);
    await Promise.all(
      workers.map(async (worker) => {
        const ended = once(worker, "exit");
        worker.process.kill("SIGTERM");
        await ended;
      }),
    );
  };

  const firsts = Array.from({ length: processes }, () => {
    const first = Promise.withResolvers<void>();
    start(backoff(FIRST_PAUSE_MS, LONGEST_PAUSE_MS), first);
    return first.promise;
  });
  try {
    await Promise.all(firsts);
  } catch (error) {
    await Promise.allSettled([stop(), ...firsts]);
    throw error;
  }
  return {
    isWhole: () => ready.size === processes,
    metrics: async () => {
      const found = await Promise.all(
        [...ready].map((worker) => {
          const id = ++asks;
          const { promise, resolve } = Promise.withResolvers<MetricValues>();
          pending.set(id, resolve);
          const late = setTimeout(resolve, METRICS_MS, []);
          worker.send({ metrics: id } satisfies ToPart, (error) => error && resolve([]));
          return promise.finally(() => {
            clearTimeout(late);
            pending.delete(id);
          });
        }),
      );
      return found.filter((values) => values.length > 0);
    },
    stop,
  };
}
