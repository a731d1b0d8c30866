/** Database timings as seen by this process. Metrics subscribe; without subscribers, nothing is measured. */
import diagnostics from "node:diagnostics_channel";
import type { WorkContext } from "../base/workContext.ts";

/** A duration on the connections of a pool. */
export interface PoolTiming {
  /** The `application_name` of its connections. */
  readonly pool: string;
  readonly ms: number;
}

/** Server time of statements that were sent together. */
export interface StatementTiming extends PoolTiming {
  /** Text of the first statement that is not a setting; undefined if unknown. */
  readonly text: string | undefined;
  /** Context of the work. */
  readonly context: WorkContext | undefined;
}

/** From sending statements until the server is ready for the next ones. */
export const statementTimings = diagnostics.channel("plat:database-statements");

/** Wait for a connection of a pool. */
export const connectionWaits = diagnostics.channel("plat:database-connection-waits");

/** Current time in milliseconds if somebody subscribes; otherwise undefined. */
export const startTiming = (channel: diagnostics.Channel): number | undefined =>
  channel.hasSubscribers ? performance.now() : undefined;

/** Publishes the time since {@link startTiming}. */
export function endTiming(channel: diagnostics.Channel, startedAt: number | undefined, pool: string): void {
  if (startedAt !== undefined)
    channel.publish({ pool, ms: performance.now() - startedAt } satisfies PoolTiming);
}
