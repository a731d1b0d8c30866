import { isIPv4, isIPv6 } from "node:net";

/**
 * What counts as one address where a limit is by address: an IPv4 address, or the 2^64 beside an IPv6 one, which whoever has one
 * of them has. As app_private.network_of says it.
 * @returns "unknown" for what is no address
 */
export function networkOf(ip: string | undefined): string {
  const address = (ip ?? "").replace(/^::ffff:(?=\d+\.)/i, "");
  if (isIPv4(address)) return address;
  if (!isIPv6(address) || address.includes("%")) return "unknown";
  // The parser of addresses gives each group of an IPv6 address in its shortest form.
  const [head = "", tail] = new URL(`http://[${address}]`).hostname.slice(1, -1).split("::");
  const before = head === "" ? [] : head.split(":");
  const after = tail ? tail.split(":") : [];
  const groups = [...before, ...Array<string>(8 - before.length - after.length).fill("0"), ...after];
  return new URL(`http://[${groups.slice(0, 4).join(":")}::]`).hostname.slice(1, -1) + "/64";
}
