/** Metrics of live events. */
import diagnostics from "node:diagnostics_channel";

export interface LiveNumbers {
  /** Open streams, and the feeds that fill them. */
  streams: number;
  feeds: number;
  /** Pages read, and events delivered to up-to-date streams, since the start. */
  reads: number;
  deliveries: number;
}

/** Seconds from the start of the transaction that wrote an event to its delivery to up-to-date streams. */
export const liveLags = diagnostics.channel("plat:live-lags");
