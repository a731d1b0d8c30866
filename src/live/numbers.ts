/** What is told of live events to those who watch the process. */
import diagnostics from "node:diagnostics_channel";

export interface LiveNumbers {
  /** Streams that are open, and feeds that they are filled from. */
  streams: number;
  feeds: number;
  /** Pages that were read, and events handed to streams that are up to date, since the start. */
  reads: number;
  deliveries: number;
}

/** Seconds from the beginning of the transaction that wrote an event until it was handed to those who are up to date. */
export const liveLags = diagnostics.channel("plat:live-lags");
