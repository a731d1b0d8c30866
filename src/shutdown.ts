import type { Logger } from "./log.ts";

// Ctrl-C under `npm start` arrives twice at once: from the terminal, and passed on by npm.
const sameSignalWithinMs = 1000;

export interface Shutdown {
  /** Steps are taken in the reverse order of adding: what was started last stops first. */
  add(what: string, stop: () => void | Promise<void>): void;
  /** Stops everything once, then ends the process with that code. */
  begin(reason: string, exitCode: number): Promise<never>;
}

/**
 * Ordered end of the process: on SIGINT and SIGTERM each part stops in turn. A second signal, a second or more
 * after the first, does not wait.
 * Steps are bounded by themselves; one that fails is logged and does not keep the others from stopping.
 */
export function orderedShutdown(log: Logger): Shutdown {
  const steps: { what: string; stop: () => void | Promise<void> }[] = [];
  let begun: Promise<never> | undefined;
  let signalledAt = 0;

  const stopAll = async (reason: string, exitCode: number): Promise<never> => {
    log.info({ reason }, "Stopping.");
    for (const { what, stop } of steps.toReversed()) {
      try {
        await stop();
        log.debug({ part: what }, "Stopped.");
      } catch (error) {
        log.error({ part: what, err: error }, "A part did not stop cleanly.");
        exitCode ||= 1;
      }
    }
    log.info("Stopped.");
    process.exit(exitCode);
  };
  const shutdown: Shutdown = {
    add: (what, stop) => void steps.push({ what, stop }),
    begin: (reason, exitCode) => (begun ??= stopAll(reason, exitCode)),
  };
  for (const signal of ["SIGINT", "SIGTERM"] as const)
    process.on(signal, () => {
      if (signalledAt && Date.now() - signalledAt > sameSignalWithinMs) process.exit(130);
      signalledAt ||= Date.now();
      void shutdown.begin(signal, 0);
    });
  return shutdown;
}
