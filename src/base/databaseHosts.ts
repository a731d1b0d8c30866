/**
 * Several hosts in one connection string: `postgres://login@first:5432,second:5432/plat?target_session_attrs=read-write`.
 * PostgreSQL's own clients connect to the one that accepts writes; node-postgres knows only one host, and `URL` reads
 * only one. A setting is therefore kept with its first host in the usual place, and all of them in a parameter.
 */

export interface Host {
  readonly host: string;
  readonly port: number;
}

/** The parameter that contains all hosts. */
const PARAMETER = "hosts";

/** The form in connection strings: `host:port`. */
export const hostText = ({ host, port }: Host): string => `${host}:${port}`;

/**
 * A connection string that each `new URL` can read; unchanged if it has one host.
 * @throws Error with the rest of a sentence that starts with the name of the setting
 */
export function withHosts(connectionString: string): string {
  const [, login = "", authority = "", rest = ""] =
    /^([a-z]+:\/\/(?:[^@/?#]*@)?)([^/?#]*)(.*)$/is.exec(connectionString) ?? [];
  const names = authority.split(",");
  if (names.length < 2) return connectionString;
  const url = new URL(`${login}${names[0]}${rest}`);
  if (!["read-write", "primary"].includes(url.searchParams.get("target_session_attrs") ?? ""))
    throw new Error("has several hosts and needs target_session_attrs=read-write, which finds the primary");
  const hosts = names.map((name) => {
    if (!URL.canParse(`${login}${name}${rest}`)) throw new Error(`has a host that cannot be read: ${name}`);
    const { hostname, port } = new URL(`${login}${name}${rest}`);
    if (!hostname) throw new Error("has several hosts, of which one has no name");
    return hostText({ host: hostname, port: Number(port || 5432) });
  });
  url.searchParams.delete("target_session_attrs");
  url.searchParams.set(PARAMETER, hosts.join(","));
  return url.href;
}

/** Takes the hosts out of a connection string; undefined if it has one. */
export function hostsOf(connectionString: string): { connectionString: string; hosts: Host[] } | undefined {
  if (!URL.canParse(connectionString)) return undefined;
  const url = new URL(connectionString);
  const given = url.searchParams.get(PARAMETER);
  if (given === null) return undefined;
  url.searchParams.delete(PARAMETER);
  const hosts = given.split(",").map((one): Host => {
    const colon = one.lastIndexOf(":");
    return { host: one.slice(0, colon).replace(/^\[(.*)\]$/, "$1"), port: Number(one.slice(colon + 1)) };
  });
  return { connectionString: url.href, hosts };
}
