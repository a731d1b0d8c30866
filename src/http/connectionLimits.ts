/** How many connections there may be: sockets are file descriptors, which the database's connections and files need too. */
import { readFileSync } from "node:fs";
import { networkOf } from "../network/networkOf.ts";

export interface ConnectionLimits {
  /** Open connections of the process. */
  readonly total: number;
  /** Of one address, or of one network where it is IPv6. */
  readonly ofAddress: number;
}

/** A connection over TLS takes about 100 KB, so this many stay below half a gigabyte. */
const usual = 4_096;
/** What those have that are no event streams. */
const leastOthers = 1_024;

/** Descriptors that this process may have; a cautious guess where the system does not tell. */
function descriptorLimit(): number {
  try {
    const [, soft] =
      /^Max open files\s+(\d+|unlimited)/m.exec(readFileSync("/proc/self/limits", "utf8")) ?? [];
    return soft === "unlimited" ? Infinity : Number(soft ?? 1_024);
  } catch {
    return 1_024;
  }
}

/**
 * Half of the descriptors at most, and of the rest another quarter for event streams, which need no other file; one address has a quarter of that, so that it takes several to keep others out.
 * @param processes among which the connections of an address are spread
 * @param streams event streams that there may be
 */
export function connectionLimits(
  descriptors = descriptorLimit(),
  processes = 1,
  streams = 0,
): ConnectionLimits {
  const wanted = Math.max(usual, streams + leastOthers);
  const most = Math.floor(descriptors / 2) + Math.min(streams, Math.floor(descriptors / 4));
  const total = Math.max(16, Math.min(wanted, most));
  return { total, ofAddress: Math.max(8, Math.ceil(Math.min(1_024, Math.floor(total / 4)) / processes)) };
}

/**
 * Counts the connections of each address.
 * @param isProxy whether an address speaks for many, which then has no limit of its own
 */
export function countByAddress(limit: number, isProxy: (address: string) => boolean) {
  const counts = new Map<string, number>();
  return {
    /** @returns what gives the place back, once; undefined where the address has as many as it may */
    take(address: string | undefined): (() => void) | undefined {
      if (address !== undefined && isProxy(address)) return () => {};
      const network = networkOf(address);
      const count = counts.get(network) ?? 0;
      if (count >= limit) return undefined;
      counts.set(network, count + 1);
      let taken = true;
      return () => {
        if (!taken) return;
        taken = false;
        const left = counts.get(network)! - 1;
        if (left === 0) counts.delete(network);
        else counts.set(network, left);
      };
    },
  };
}
