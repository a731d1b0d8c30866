/** Exit codes of the service, for supervisors. */
export const exitCodes = {
  /** Graceful shutdown. */
  stopped: 0,
  /** Failed start, with a message on stderr, or a crash. A restart may succeed once the cause is fixed. */
  failed: 1,
  /** The process cannot continue although its dependencies are available: restart it at once (EX_UNAVAILABLE). */
  unable: 69,
  /** A second signal, or a shutdown that exceeded its timeout: work was aborted. */
  cut: 130,
} as const;
