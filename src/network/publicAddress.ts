/**
 * The guard before every address that a user can make the service call. An address is an https URL without credentials on
 * port 443 or 8443; its name is resolved, and unless each of the answers is public, it is refused. The connection then goes to
 * exactly these answers: a name that resolves differently a moment later leads nowhere else.
 */
import { Resolver } from "node:dns/promises";
import { BlockList, isIP, isIPv4 } from "node:net";

/** An IP address that was checked. */
export interface CheckedAddress {
  address: string;
  family: 4 | 6;
}

/** Where to connect to. */
export interface Destination {
  url: URL;
  /** At least one; all of them are as public as the policy wants. */
  addresses: CheckedAddress[];
  isLoopback: boolean;
}

/** What is allowed beside public addresses. */
export interface AddressPolicy {
  /** This machine, on any port: for development. */
  loopback: boolean;
  /** Which name servers are asked, as 127.0.0.1:53; those of the system where omitted. */
  nameServers?: string[];
}

/** An address that is refused; its message is a sentence for the caller. */
export class AddressRefused extends Error {}

/** A name that could not be resolved now; a later try may find it. */
export class AddressUnknown extends Error {}

const ports = ["", "443", "8443"];

/** IANA's registry of special-purpose addresses; what a network may use for itself is not public. */
const special4 = blockList("ipv4", [
  "0.0.0.0/8",
  "10.0.0.0/8",
  "100.64.0.0/10",
  "127.0.0.0/8",
  "169.254.0.0/16",
  "172.16.0.0/12",
  "192.0.0.0/24",
  "192.0.2.0/24",
  "192.31.196.0/24",
  "192.52.193.0/24",
  "192.88.99.0/24",
  "192.168.0.0/16",
  "192.175.48.0/24",
  "198.18.0.0/15",
  "198.51.100.0/24",
  "203.0.113.0/24",
  "224.0.0.0/3",
  // The metadata service of a large cloud, though of a public range.
  "168.63.129.16/32",
]);
/** All of 2000::/3 is public but these; outside of it nothing is: mapped, NAT64, unique local, link-local, multicast. */
const global6 = blockList("ipv6", ["2000::/3"]);
const special6 = blockList("ipv6", [
  "2001::/23",
  "2001:db8::/32",
  "2002::/16",
  "2620:4f:8000::/48",
  "3fff::/20",
]);
const loopback4 = blockList("ipv4", ["127.0.0.0/8"]);

function blockList(family: "ipv4" | "ipv6", networks: string[]): BlockList {
  const list = new BlockList();
  for (const network of networks) {
    const [address, bits] = network.split("/") as [string, string];
    list.addSubnet(address, Number(bits), family);
  }
  return list;
}

/** Whether an IP address is one that anybody can reach, and no special one. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special4.check(address, "ipv4");
  return isIP(address) === 6 && global6.check(address, "ipv6") && !special6.check(address, "ipv6");
}

const isLoopback = (address: string): boolean =>
  isIPv4(address) ? loopback4.check(address, "ipv4") : address === "::1";

const localName = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/;

/**
 * Parses and resolves an address.
 * @throws AddressRefused, AddressUnknown
 */
export async function resolvePublicAddress(text: string, policy: AddressPolicy): Promise<Destination> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:") throw new AddressRefused("The URL must start with https://.");
  if (url.username || url.password)
    throw new AddressRefused("The URL must not contain a user name or password.");
  // The parser has made 127.1, 0x7f000001 and 2130706433 the same already.
  const { addresses, isLoopback: loopback } = await resolvePublicHost(
    url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, ""),
    policy,
  );
  if (!loopback && !ports.includes(url.port))
    throw new AddressRefused("The port of the URL must be 443 or 8443.");
  return { url, addresses, isLoopback: loopback };
}

/**
 * Resolves the name of a host that is called otherwise than by an https address, such as a mail server.
 * @throws AddressRefused, AddressUnknown
 */
export async function resolvePublicHost(
  host: string,
  policy: AddressPolicy,
): Promise<Omit<Destination, "url">> {
  const addresses = await resolveHost(host.toLowerCase(), policy);
  const loopback = policy.loopback && addresses.every(({ address }) => isLoopback(address));
  if (!loopback && !addresses.every(({ address }) => isPublicAddress(address)))
    throw new AddressRefused("This host is not on a public network.");
  return { addresses, isLoopback: loopback };
}

async function resolveHost(host: string, policy: AddressPolicy): Promise<CheckedAddress[]> {
  const family = isIP(host);
  if (family) return [{ address: host, family: family as 4 | 6 }];
  if (localName.test(host) && !(policy.loopback && host === "localhost"))
    throw new AddressRefused("This host is not on a public network.");
  if (policy.loopback && host === "localhost") return [{ address: "127.0.0.1", family: 4 }];
  // NOTE: Not `lookup`, which occupies one of the process's few threads for as long as a slow name server likes.
  const resolver = new Resolver({ timeout: 2000, tries: 2 });
  if (policy.nameServers) resolver.setServers(policy.nameServers);
  const [found4, found6] = await Promise.all([
    resolver.resolve4(host).catch(() => []),
    resolver.resolve6(host).catch(() => []),
  ]);
  const found: CheckedAddress[] = [
    ...found4.map((address) => ({ address, family: 4 as const })),
    ...found6.map((address) => ({ address, family: 6 as const })),
  ];
  if (found.length === 0) throw new AddressUnknown("This host name does not exist.");
  return found;
}
