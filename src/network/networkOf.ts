import { isIPv4, isIPv6 } from "node:net";

/**
 * The unit of limits by address: an IPv4 address, or the /64 network of an IPv6 address, which usually belongs to one subscriber. Like
 * app_private.network_of.
 * @returns "unknown" if it is not an address
 */
export function networkOf(ip: string | undefined): string {
  const address = (ip ?? "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes("%")) return "unknown";
  // The address parser normalizes each group of an IPv6 address to its shortest form.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail ? tail.split(":") : [];
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
  return new URL(`http://[${groups.slice(0, 4).join(":")}::]`).hostname.slice(1, -1) + "/64";
}
