import { execFile, spawn, spawnSync } from "node:child_process";
import { once } from "node:events";
import {
  closeSync,
  openSync,
  readFileSync,
  readlinkSync,
  renameSync,
  rmSync,
  statfsSync,
  statSync,
} from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { freePort } from "../network/freePort.ts";
import { lowerPriority } from "../base/priority.ts";
import { keepSessionsLow } from "../base/sessionPriorities.ts";
import type { RunAs } from "./systemUser.ts";

/** A running PostgreSQL server. */
export interface Postmaster {
  port: number;
  /** Resolves when the server is gone, for whatever reason. */
  exited: Promise<void>;
  /** Waits a second for sessions to end, aborts the remaining ones, and writes a checkpoint. */
  stop(): Promise<void>;
}

interface Start {
  postgres: string;
  data: string;
  logFile: string;
  runAs: RunAs;
  settings: Record<string, string | number>;
  /** Nice increment of its processes and of their sessions; see lowerPriority. Default: none. */
  nice?: number;
  /** Called while it does not accept connections yet, every `slowMs`, with the seconds since its start. */
  onSlow?: (seconds: number) => void;
  /** Default: half a minute. */
  slowMs?: number | undefined;
  /** Port on the loopback interface. Default: a free port. */
  port?: number | undefined;
}

const defaultSlowMs = 30_000;
const sessionsEndWithinMs = 1000;
const stopWithinMs = 30_000;
/** Milliseconds until processes of a killed server have noticed that. */
const leftoversEndWithinMs = 20_000;

/** The server did not start. The message is meant for the user. */
export class NotStarted extends Error {
  /** Whether its disk is full. */
  readonly isFull: boolean;

  constructor({ data, logFile }: Pick<Start, "data" | "logFile">, output: string) {
    const isFull = hasNoRoom(data) || /No space left on device|Disk quota exceeded/.test(output);
    const why = isFull ? ", as its disk is full: make room there, then start again" : "";
    super(`PostgreSQL did not start${why}; the end of ${logFile} says:\n${output.slice(-2000)}`);
    this.isFull = isFull;
  }
}

/** WAL segment size; without space for one it does not start. */
const segmentBytes = 16 * 2 ** 20;

/** The disk is checked as well: if the server's log is on the same one, there was no space for its message either. */
function hasNoRoom(data: string): boolean {
  return [data, join(data, "pg_wal")].some((folder) => {
    const { bavail, bsize } = statfsSync(folder);
    return bavail * bsize < segmentBytes;
  });
}

/**
 * Starts the server on a loopback port and waits until it accepts connections, for as long as it runs: after a crash
 * it may replay its log for many minutes, would have to begin again if it was interrupted, and never start.
 */
export async function startPostmaster(start: Start): Promise<Postmaster> {
  const begun = performance.now();
  for (let attempt = 1; ; attempt++) {
    try {
      return await startOnce(start, start.port ?? (await freePort()));
    } catch (error) {
      // The port may have been taken since it was found.
      if (attempt < 5 && start.port === undefined && /Address already in use/.test(String(error))) continue;
      const isLeftover = /pre-existing shared memory block/.test(String(error));
      if (!isLeftover || performance.now() - begun > leftoversEndWithinMs) throw error;
      await delay(100);
    }
  }
}

async function startOnce(
  { postgres, data, logFile, runAs, settings, nice, onSlow, slowMs = defaultSlowMs }: Start,
  port: number,
): Promise<Postmaster> {
  const options = Object.entries({ ...settings, port }).flatMap(([name, value]) => [
    "-c",
    `${name}=${value}`,
  ]);
  const log = openLog(logFile);
  const logStart = statSync(logFile).size;
  // In a session of its own, so that Ctrl-C in the terminal reaches us and not the database.
  const child = spawn(postgres, ["-D", data, ...options], {
    ...runAs,
    cwd: "/",
    detached: true,
    stdio: ["ignore", log, log],
    env: { LC_ALL: "C", TZ: "UTC" },
  });
  closeSync(log);
  // Before it starts child processes, which inherit it.
  if (nice !== undefined && child.pid !== undefined) lowerPriority(nice, child.pid);
  const stopLooking =
    nice !== undefined && child.pid !== undefined ? keepSessionsLow(child.pid, nice) : () => {};
  const state = { gone: false };
  const exited = new Promise<void>((resolve) => {
    const settle = () => {
      state.gone = true;
      stopLooking();
      process.off("exit", killNow);
      resolve();
    };
    child.once("exit", settle);
    child.once("error", settle);
  });
  const killNow = () => void child.kill("SIGINT");
  // The database does not outlive this process, unless this is killed with SIGKILL.
  process.on("exit", killNow);

  const begun = performance.now();
  const slow = setInterval(() => onSlow?.(Math.round((performance.now() - begun) / 1_000)), slowMs);
  while (!state.gone && !isReady(data, child.pid)) await Promise.race([exited, delay(15)]);
  clearInterval(slow);
  if (state.gone) {
    const output = readFileSync(logFile).subarray(logStart).toString().trim();
    throw new NotStarted({ data, logFile }, output);
  }
  return { port, exited, stop: () => stopChild(child, exited) };
}

/**
 * Runs statements as the superuser of a stopped cluster, without a password: the owner of the folder may.
 * @param statements one line each.
 * @throws Error with the server's output if one of them failed.
 */
export async function runAlone(
  { postgres, data, runAs }: Pick<Start, "postgres" | "data" | "runAs">,
  statements: readonly string[],
): Promise<void> {
  const child = execFile(postgres, ["--single", "-D", data, "postgres"], {
    ...runAs,
    cwd: "/",
    env: { LC_ALL: "C", TZ: "UTC" },
  });
  let output = "";
  child.stderr?.setEncoding("utf8").on("data", (text: string) => (output += text));
  const exited = once(child, "exit");
  child.stdin?.end(statements.map((statement) => `${statement}\n`).join(""));
  const [code] = await exited;
  if (code !== 0 || /^.*(ERROR|FATAL):/m.test(output))
    throw new Error(`PostgreSQL refused to be set up: ${output.trim().slice(-2000)}`);
}

async function stopChild(child: ReturnType<typeof spawn>, exited: Promise<void>): Promise<void> {
  // Our own sessions are about to end by themselves, and aborting them would report failures; other sessions get
  // little time.
  child.kill("SIGTERM");
  const timers = [
    setTimeout(() => child.kill("SIGINT"), sessionsEndWithinMs),
    setTimeout(() => child.kill("SIGQUIT"), stopWithinMs),
  ];
  await exited;
  timers.forEach(clearTimeout);
}

function openLog(logFile: string): number {
  const log = openSync(logFile, "a", 0o600);
  if (statSync(logFile).size < 20_000_000) return log;
  closeSync(log);
  renameSync(logFile, `${logFile}.1`);
  return openSync(logFile, "a", 0o600);
}

/** The server writes its state to the eighth line of its pid file. */
function isReady(data: string, pid: number | undefined): boolean {
  const lines = pidFile(data);
  return Number(lines[0]) === pid && lines[7]?.trim() === "ready";
}

/** The loopback port of the server of that folder; undefined if it is not known. */
export function postmasterPort(data: string): number | undefined {
  return Number(pidFile(data)[3]) || undefined;
}

function pidFile(data: string): string[] {
  try {
    return readFileSync(join(data, "postmaster.pid"), "utf8").split("\n");
  } catch {
    return [];
  }
}

/**
 * Stops a server whose parent process was killed. The caller holds the lock of the data folder, so any server there
 * is orphaned.
 * @returns whether there was one.
 */
export async function stopLeftover(data: string): Promise<boolean> {
  const pid = Number(pidFile(data)[0]);
  if (!pid) return false;
  if (!isPostmasterOf(data, pid)) {
    // The pid may belong to another process now, and PostgreSQL would refuse to start.
    if (isAlive(pid)) rmSync(join(data, "postmaster.pid"), { force: true });
    return false;
  }
  const begun = performance.now();
  process.kill(pid, "SIGINT");
  // Checked like this rather than by pid: without an init that reaps orphans, a zombie keeps its pid forever.
  for (let forced = false; isPostmasterOf(data, pid); await delay(15)) {
    if (forced || performance.now() - begun < stopWithinMs) continue;
    process.kill(pid, "SIGQUIT");
    forced = true;
  }
  return true;
}

function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === "EPERM";
  }
}

function isPostmasterOf(data: string, pid: number): boolean {
  if (!isAlive(pid)) return false;
  if (process.platform === "linux") {
    try {
      return readlinkSync(`/proc/${pid}/cwd`) === data;
    } catch {
      return false;
    }
  }
  return spawnSync("ps", ["-o", "command=", "-p", String(pid)], { encoding: "utf8" }).stdout.includes(data);
}
