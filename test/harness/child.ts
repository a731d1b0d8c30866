// oxlint-disable-next-line no-restricted-imports -- here it is
import { spawn, type ChildProcess, type SpawnOptions } from "node:child_process";
import { once } from "node:events";

const running = new Set<ChildProcess>();
const endsWithinMs = 20_000;

/**
 * Starts Node with these arguments, as a process that ends with the test file even if a test fails before it ends the
 * process. A process that continues would keep its jobs, and the output of the run, which would never end.
 */
export function startChild<Options extends SpawnOptions>(args: string[], options: Options): ChildProcess {
  return startProgram(process.execPath, args, options);
}

/** The same for another program. */
export function startProgram(program: string, args: string[], options: SpawnOptions): ChildProcess {
  const child = spawn(program, args, options);
  running.add(child);
  child.once("exit", () => running.delete(child));
  child.once("error", () => running.delete(child));
  return child;
}

/** Kills it, and waits until it is gone. */
export async function killChild(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exit = once(child, "exit");
  child.kill("SIGKILL");
  await exit;
}

async function endAll(): Promise<void> {
  await Promise.all(
    [...running].map(async (child) => {
      const exit = once(child, "exit");
      // A service stops its database as well.
      child.kill("SIGTERM");
      // oxlint-disable-next-line no-restricted-globals -- the end of a wait
      const timer = setTimeout(() => child.kill("SIGKILL"), endsWithinMs);
      await exit;
      clearTimeout(timer);
    }),
  );
}

// Scripts other than tests end their child processes themselves.
(globalThis as { afterAll?: typeof import("@jest/globals").afterAll }).afterAll?.(endAll, 2 * endsWithinMs);
process.on("exit", () => running.forEach((child) => child.kill("SIGKILL")));
