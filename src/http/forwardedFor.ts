import type { IncomingMessage } from "node:http";

/**
 * The address of a client for sharing among clients: of a connection from a proxy, the last one in its header
 * X-Forwarded-For that is no proxy.
 */
export function forwardedFor(
  { socket: { remoteAddress }, headers }: IncomingMessage,
  isProxy: (address: string) => boolean,
): string | undefined {
  const header = headers["x-forwarded-for"];
  if (header === undefined || remoteAddress === undefined || !isProxy(remoteAddress)) return remoteAddress;
  const addresses = String(header).split(",");
  return addresses.map((address) => address.trim()).findLast((address) => !isProxy(address)) ?? remoteAddress;
}
