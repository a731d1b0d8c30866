/** Limits on connections: sockets need file descriptors, as do database connections and files. */
import { readFileSync } from "node:fs";
import { networkOf } from "../network/networkOf.ts";

export interface ConnectionLimits {
  /** Maximum number of open connections per process. */
  readonly total: number;
  /** Per address, or per network with IPv6. */
  readonly ofAddress: number;
}

/** A TLS connection takes about 100 KB, so this many stay below half a gigabyte. */
const usual = 4_096;
/** Limit for connections other than event streams. */
const leastOthers = 1_024;

/** File descriptor limit of this process; a cautious guess if the system does not report it. */
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
 * Uses at most half of the descriptors, and another quarter of the rest for event streams, which need no other file.
 * One address gets a quarter of that, so that a single one cannot exclude others.
 * @param processes that share the connections of an address
 * @param streams maximum number of event streams
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
 * Counts connections per address.
 * @param isProxy whether an address is a proxy, which has no limit of its own
 */
export function countByAddress(limit: number, isProxy: (address: string) => boolean) {
  const counts = new Map<string, number>();
  return {
    /** @returns a function that releases the place, once; undefined at the limit of the address */
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
