/** Times of the database as this process sees them. Metrics subscribe; while nobody does, nothing is measured. */
import diagnostics from "node:diagnostics_channel";
import type { WorkContext } from "../base/workContext.ts";

/** How long something took on the connections of a pool. */
export interface PoolTiming {
  /** The `application_name` of its connections. */
  readonly pool: string;
  readonly ms: number;
}

/** How long the server took for statements that were sent together. */
export interface StatementTiming extends PoolTiming {
  /** The text of the first of them that is not a setting; undefined where it is not known. */
  readonly text: string | undefined;
  /** For whom it was sent. */
  readonly context: WorkContext | undefined;
}

/** From statements that are sent on a connection to the server being ready for the next. */
export const statementTimings = diagnostics.channel("plat:database-statements");

/** From asking a pool for a connection to having it. */
export const connectionWaits = diagnostics.channel("plat:database-connection-waits");

/** Now, in milliseconds, where somebody measures; undefined otherwise. */
export const startTiming = (channel: diagnostics.Channel): number | undefined =>
  channel.hasSubscribers ? performance.now() : undefined;

/** Tells how long it took since {@link startTiming}. */
export function endTiming(channel: diagnostics.Channel, startedAt: number | undefined, pool: string): void {
  if (startedAt !== undefined)
    channel.publish({ pool, ms: performance.now() - startedAt } satisfies PoolTiming);
}
