/** Runs work at most once at a time. Calls during a run are coalesced into one further run. */
export function coalesceCalls(work: () => Promise<void>, report: (error: unknown) => void) {
  let running: Promise<void> | undefined;
  let again = false;
  const run = async () => {
    do {
      again = false;
      await work().catch(report);
    } while (again);
    running = undefined;
  };
  return {
    call: () => {
      if (running) again = true;
      else running = run();
    },
    idle: async () => {
      await running;
    },
  };
}
