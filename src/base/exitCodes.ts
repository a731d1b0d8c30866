/** What the service ends with, for whoever starts it again. */
export const exitCodes = {
  /** It was told to stop, and everything stopped in order. */
  stopped: 0,
  /** A start that was refused, with a sentence on stderr, or a failure of the process: a start may go well when its cause is mended. */
  failed: 1,
  /** It ran, and cannot do its work any more though what it depends on is there: start it again, at once (EX_UNAVAILABLE). */
  unable: 69,
  /** A second signal, or a stop that took longer than it may: something was cut off. */
  cut: 130,
} as const;
