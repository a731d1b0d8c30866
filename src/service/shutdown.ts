/** Ordered, bounded shutdown: parts are stopped in reverse order of their start, within STOP_TIMEOUT. */
import { exitCodes } from "../base/exitCodes.ts";
import type { Logger } from "../base/log.ts";

// Ctrl-C under `npm start` arrives twice: from the terminal, and forwarded by npm.
const sameSignalWithinMs = 1000;

/** Why a part is stopped: the exit code of the process, 0 for a signal. */
export interface Stop {
  readonly exitCode: number;
}

export interface Shutdown {
  /** Steps run in reverse order: what was started last stops first. */
  add(what: string, stop: (why: Stop) => void | Promise<void>): void;
  /** Stops everything once, then ends the process with that code. */
  begin(reason: string, exitCode: number): Promise<never>;
}

/**
 * Ordered shutdown: on SIGINT and SIGTERM, each part stops in turn. A second signal, a second or more after the first, does not wait.
 * A step that fails is logged and does not prevent the others; what exceeds the time limit is cut off by the end of the process.
 * @param withinMs milliseconds for all steps together
 */
export function orderedShutdown(log: Logger, withinMs: number): Shutdown {
  const steps: { what: string; stop: (why: Stop) => void | Promise<void> }[] = [];
  let begun: Promise<never> | undefined;
  let signalledAt = 0;

  const stopAll = async (reason: string, exitCode: number): Promise<never> => {
    log.info({ event: "service.stopping", reason }, "Stopping.");
    const left = new Set(steps.map(({ what }) => what));
    const late = setTimeout(() => {
      log.error(
        { event: "stop.timeout", parts: [...left] },
        "Shutdown timed out; exiting without waiting for remaining work.",
      );
      process.exit(exitCode || exitCodes.cut);
    }, withinMs);
    for (const { what, stop } of steps.toReversed()) {
      try {
        await stop({ exitCode });
        log.debug({ event: "service.stopped", part: what }, "Stopped.");
      } catch (error) {
        log.error({ event: "stop.failed", part: what, err: error }, "A component failed during shutdown.");
        exitCode ||= exitCodes.failed;
      }
      left.delete(what);
    }
    clearTimeout(late);
    log.info({ event: "service.stopped" }, "Stopped.");
    process.exit(exitCode);
  };
  const shutdown: Shutdown = {
    add: (what, stop) => void steps.push({ what, stop }),
    begin: (reason, exitCode) => (begun ??= stopAll(reason, exitCode)),
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      if (signalledAt && performance.now() - signalledAt > sameSignalWithinMs) process.exit(exitCodes.cut);
      signalledAt ||= performance.now();
      shutdown.begin(signal, exitCodes.stopped).catch(() => process.exit(exitCodes.failed));
    });
  return shutdown;
}
