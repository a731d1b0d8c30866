/** Several processes of the API: their start, their restarts, their metrics and their end, with real processes. */
import cluster, { type Worker } from "node:cluster";
import { once } from "node:events";
import { join } from "node:path";
import { afterEach, describe, expect, jest, test } from "@jest/globals";
import pino from "pino";
import {
  requestPart,
  servePart,
  startApiProcesses,
  type ApiProcesses,
  type MetricValues,
} from "../../src/http/apiProcesses.ts";
import { until } from "../harness/until.ts";
import type { Behaviour } from "./apiProcess.ts";

const entry = join(import.meta.dirname, "apiProcess.ts");
let running: ApiProcesses | undefined;

const workers = () => Object.values(cluster.workers ?? {}) as Worker[];

afterEach(async () => {
  jest.restoreAllMocks();
  await running?.stop();
  running = undefined;
  // What a failed start has left.
  for (const worker of workers()) worker.process.kill("SIGKILL");
  await until(() => workers().length === 0);
});

/** The id that the next process gets. */
let nextId = 1;
cluster.on("fork", ({ id }) => (nextId = id + 1));

async function start(behaviour: Behaviour, processes = 1) {
  const lines: Record<string, any>[] = [];
  const log = pino({ level: "info" }, { write: (line: string) => void lines.push(JSON.parse(line)) });
  const found = await startApiProcesses({ entry, config: behaviour as never, processes, log });
  running = found;
  return { ...found, lines };
}

/** The metrics once that many processes answer in time, which a busy machine may delay. */
const answers = (metrics: ApiProcesses["metrics"], amount: number) =>
  until(metrics, (found) => found.length === amount);

test("each process gets its role, over a channel that carries any value, and reports its metrics", async () => {
  const marks = new Date(1_780_000_000_000);
  const { isWhole, metrics, lines } = await start({ marks }, 2);
  expect(isWhole()).toBe(true);
  const found = (await answers(metrics, 2)) as Record<string, unknown>[][];
  const [first, second] = found.map(([values]) => values!);
  expect(found.map((values) => values.length)).toEqual([1, 1]);
  expect([first!["pid"], second!["pid"]].toSorted()).toEqual(
    workers()
      .map((worker) => worker.process.pid)
      .toSorted(),
  );
  expect(first).toMatchObject({ args: ["--api-only"], marks, processes: 2 });
  expect(first!["ticketKeys"]).toHaveLength(48);
  expect(second!["ticketKeys"]).toEqual(first!["ticketKeys"]);
  expect(lines).toEqual([]);
});

test("stop waits until all have exited by SIGTERM, and none is started again", async () => {
  const { stop, isWhole, lines } = await start({}, 2);
  const ended = workers().map((worker) => once(worker, "exit"));
  await stop();
  expect(workers()).toEqual([]);
  expect(await Promise.all(ended)).toEqual([
    [null, "SIGTERM"],
    [null, "SIGTERM"],
  ]);
  expect(isWhole()).toBe(false);
  expect(lines).toEqual([]);
});

test.each([
  ["code", "3"],
  ["signal", "SIGKILL"],
] as const)(
  "a process that exits with a %s before it is ready fails the start, and the others are stopped",
  async (how, reason) => {
    await expect(start({ exits: new Map([[nextId, how]]) }, 2)).rejects.toThrow(
      `A process of the API ended before it was ready (${reason}).`,
    );
    expect(workers()).toEqual([]);
  },
);

test("a process that exits is replaced after a pause that grows, and is short again after a long life", async () => {
  jest.spyOn(Math, "random").mockReturnValue(0);
  const timed = jest.spyOn(globalThis, "setTimeout");
  let now = 5_000;
  jest.spyOn(performance, "now").mockImplementation(() => now);
  const exits = new Map<number, "code" | "signal">();
  const { isWhole, metrics, lines, stop } = await start({ exits });
  const end = async () => {
    const [worker] = workers();
    const ended = once(worker!, "exit");
    worker!.process.kill("SIGKILL");
    await ended;
    expect(isWhole()).toBe(false);
    return worker!.process.pid;
  };
  const pid = await end();
  expect(lines).toHaveLength(1);
  expect(lines[0]).toMatchObject({
    level: 50,
    event: "api_process.ended",
    pid,
    code: null,
    signal: "SIGKILL",
    pauseMs: 250,
  });
  expect(await metrics()).toEqual([]);
  await until(isWhole);
  expect((await answers(metrics, 1)).flat()).toEqual([
    expect.objectContaining({ pid: workers()[0]!.process.pid, processes: 1 }),
  ]);
  // It was ready for 30 seconds, which is not longer than the longest pause.
  now += 30_000;
  await end();
  await until(isWhole);
  now += 30_001;
  // The next one exits before it is ready, and is replaced too.
  exits.set(nextId, "code");
  await end();
  await until(() => lines.length === 4);
  expect(lines.map(({ pauseMs, code }) => [pauseMs, code])).toEqual([
    [250, null],
    [500, null],
    [250, null],
    [500, 3],
  ]);
  // During a pause, only the pause is stopped.
  const pause = timed.mock.results.at(timed.mock.calls.findLastIndex(([, ms]) => ms === 500))!.value;
  const cleared = jest.spyOn(globalThis, "clearTimeout");
  await stop();
  expect(cleared.mock.calls).toEqual([[pause]]);
  expect(workers()).toEqual([]);
});

test("metrics come from the processes that answer within a second, and nothing waits for the others", async () => {
  const isSilent = new Set([nextId]);
  const { metrics } = await start({ isSilent }, 2);
  const cleared = jest.spyOn(globalThis, "clearTimeout");
  const timed = jest.spyOn(globalThis, "setTimeout");
  const answering = workers().find(({ id }) => !isSilent.has(id))!;
  expect((await answers(metrics, 1)).flat()).toEqual([
    expect.objectContaining({ pid: answering.process.pid }),
  ]);
  const late = timed.mock.calls.flatMap(([, ms], n) =>
    ms === 1_000 ? [timed.mock.results[n]!.value as NodeJS.Timeout] : [],
  );
  expect(late.length).toBeGreaterThanOrEqual(2);
  for (const timer of late) expect(cleared).toHaveBeenCalledWith(timer);
});

test("a process whose channel is closed has no metrics, and a lost message is logged", async () => {
  const { metrics, isWhole, lines } = await start({});
  const [worker] = workers();
  worker!.emit("error", new Error("The channel is closed."));
  expect(lines).toMatchObject([
    { level: 40, event: "api_process.channel", err: { message: "The channel is closed." } },
  ]);
  expect(isWhole()).toBe(true);
  const timed = jest.spyOn(globalThis, "setTimeout");
  jest.spyOn(worker!, "send").mockImplementation(((_message: unknown, done: (error: Error) => void) => {
    done(new Error("The channel is closed."));
    return false;
  }) as never);
  expect(await metrics()).toEqual([]);
  expect(timed).toHaveBeenCalledTimes(1);
});

describe("within a process", () => {
  /** What the process has sent to the first one. */
  const sent: unknown[] = [];
  const send = Object.getOwnPropertyDescriptor(process, "send");

  /** Makes this process look like one of the API. */
  function becomeWorker(): void {
    sent.length = 0;
    jest.replaceProperty(cluster as { isWorker: boolean }, "isWorker", true);
    Object.defineProperty(process, "send", { configurable: true, value: (one: unknown) => sent.push(one) });
  }

  afterEach(() => {
    if (send) Object.defineProperty(process, "send", send);
    else delete process.send;
  });

  test("the first process has no role to request", async () => {
    expect(await requestPart()).toBeUndefined();
  });

  test("a role is requested, and taken from the answer", async () => {
    becomeWorker();
    const found = requestPart();
    expect(sent).toEqual([{ asks: "part" }]);
    process.emit("message" as never, { part: { processes: 2 } } as never);
    expect(await found).toEqual({ processes: 2 });
  });

  test("metrics are sent on request only, and their failure is no failure of the process", async () => {
    becomeWorker();
    const values: (() => Promise<MetricValues>)[] = [];
    const asked = jest.fn(() => values.shift()!());
    const before = process.listeners("message" as never);
    servePart(asked);
    expect(sent).toEqual([{ ready: true }]);
    process.emit("message" as never, { part: {} } as never);
    expect(asked).not.toHaveBeenCalled();
    values.push(
      () => Promise.reject(new Error("No metrics.")),
      () => Promise.resolve([{ name: "a" }]),
    );
    process.emit("message" as never, { metrics: 7 } as never);
    process.emit("message" as never, { metrics: 8 } as never);
    await until(() => sent.length === 2);
    expect(sent[1]).toEqual({ metrics: 8, values: [{ name: "a" }] });
    for (const listener of process.listeners("message" as never))
      if (!before.includes(listener)) process.off("message", listener as never);
  });
});
