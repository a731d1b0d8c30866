/**
 * The SSRF guard before every user-provided URL that the service calls. It must be an https URL without credentials on port 443 or 8443;
 * its name is resolved, and refused unless all addresses are public. The connection then goes to exactly these addresses, so that DNS
 * rebinding has no effect.
 */
import { Resolver } from "node:dns/promises";
import { BlockList, isIP, isIPv4 } from "node:net";

/** An IP address that was checked. */
export interface CheckedAddress {
  address: string;
  family: 4 | 6;
}

/** The target of the connection. */
export interface Destination {
  url: URL;
  /** At least one; all of them comply with the policy. */
  addresses: CheckedAddress[];
  isLoopback: boolean;
}

/** What is allowed besides public addresses. */
export interface AddressPolicy {
  /** This machine, on any port: for development. */
  loopback: boolean;
  /** The name servers, such as 127.0.0.1:53; those of the system by default. */
  nameServers?: string[];
}

/** A refused address; its message is a sentence for the client. */
export class AddressRefused extends Error {}

/** A name that could not be resolved now; a retry may succeed. */
export class AddressUnknown extends Error {}

const ports = ["", "443", "8443"];

/** IANA's registry of special-purpose addresses; addresses for private use are not public. */
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
  // The metadata service of a large cloud, although in a public range.
  "168.63.129.16/32",
]);
/** All of 2000::/3 is public except for these; nothing outside of it is: mapped, NAT64, unique local, link-local, multicast. */
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

/** Whether an IP address is publicly routable and not special. */
export function isPublicAddress(address: string): boolean {
  if (isIPv4(address)) return !special4.check(address, "ipv4");
  return isIP(address) === 6 && global6.check(address, "ipv6") && !special6.check(address, "ipv6");
}

const isLoopback = (address: string): boolean =>
  isIPv4(address) ? loopback4.check(address, "ipv4") : address === "::1";

const localName = /(^|\.)(localhost|local|internal|intranet|lan|home\.arpa)$/;

/**
 * Parses and resolves a URL.
 * @throws AddressRefused, AddressUnknown
 */
export async function resolvePublicAddress(text: string, policy: AddressPolicy): Promise<Destination> {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url?.protocol !== "https:") throw new AddressRefused("The URL must start with https://.");
  if (url.username || url.password)
    throw new AddressRefused("The URL must not contain a user name or password.");
  // The parser has already normalized 127.1, 0x7f000001 and 2130706433.
  const { addresses, isLoopback: loopback } = await resolvePublicHost(
    url.hostname.replace(/^\[|\]$/g, "").replace(/\.$/, ""),
    policy,
  );
  if (!loopback && !ports.includes(url.port))
    throw new AddressRefused("The port of the URL must be 443 or 8443.");
  return { url, addresses, isLoopback: loopback };
}

/**
 * Resolves the name of a host that is not called by an https URL, such as a mail server.
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
  // NOTE: Not `lookup`, which blocks one of the few threads of the process for as long as a slow name server takes.
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
