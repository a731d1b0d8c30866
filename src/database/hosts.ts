/** Finds the primary among several hosts; see src/base/databaseHosts.ts. */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { type Host, hostsOf, hostText } from "../base/databaseHosts.ts";

/** Milliseconds that a host has to answer. */
const PROBE_MS = 1_500;
/** Milliseconds between two rounds in which no host accepted writes. */
const ROUND_MS = 100;

/** The primary among hosts, as far as this process knows. */
class Primary {
  #known: Host | undefined;
  #finding: Promise<Host> | undefined;

  /** @throws Error if no host accepts writes */
  find(hosts: readonly Host[], connectionString: string): Promise<Host> {
    if (this.#known) return Promise.resolve(this.#known);
    this.#finding ??= this.#ask(hosts, connectionString).finally(() => (this.#finding = undefined));
    return this.#finding;
  }

  /** The host could not be reached, or is a standby. */
  forget(host: Host): void {
    if (this.#known === host) this.#known = undefined;
  }

  async #ask(hosts: readonly Host[], connectionString: string): Promise<Host> {
    const answers = await Promise.all(
      hosts.map(async (host) => ({ host, ...(await timelineOf(host, connectionString)) })),
    );
    // A former primary that came back without being told is on an earlier timeline.
    const [primary] = answers
      .filter((answer) => answer.timeline !== undefined)
      .toSorted((one, other) => other.timeline! - one.timeline!);
    if (primary) return (this.#known = primary.host);
    // Whoever waits asks again at once.
    await pause(ROUND_MS);
    const reasons = answers.map(({ host, reason }) => `${hostText(host)}: ${reason}`);
    throw new Error(`None of the hosts accepts writes (${reasons.join("; ")}).`);
  }
}

const primaries = new Map<string, Primary>();

/** The one of these hosts. */
export function primaryOf(hosts: readonly Host[]): Primary {
  const key = hosts.map(hostText).join(",");
  const known = primaries.get(key) ?? new Primary();
  primaries.set(key, known);
  return known;
}

export type { Primary };

/** The timeline of a host that accepts writes, or the reason why there is none. */
async function timelineOf(
  { host, port }: Host,
  connectionString: string,
): Promise<{ timeline?: number; reason?: string }> {
  const url = new URL(connectionString);
  url.searchParams.delete("options");
  url.hostname = host.includes(":") ? `[${host}]` : host;
  url.port = String(port);
  const client = new Client({
    connectionString: url.href,
    connectionTimeoutMillis: PROBE_MS,
    query_timeout: PROBE_MS,
    application_name: "plat-primary",
  });
  client.on("error", () => {});
  try {
    await client.connect();
    const { rows } = await client.query<{ timeline: string | null }>(
      `select case when not pg_is_in_recovery() and not current_setting('default_transaction_read_only')::boolean
         then left(pg_walfile_name(pg_current_wal_insert_lsn()), 8) end as timeline`,
    );
    const [row] = rows;
    return row?.timeline ? { timeline: Number.parseInt(row.timeline, 16) } : { reason: "a standby" };
  } catch (error) {
    return { reason: (error as Error).message };
  } finally {
    void client.end().catch(() => {});
  }
}

/**
 * The connection string of the primary alone, for programs that are not ours.
 * @throws Error if no host accepts writes
 */
export async function primaryUrl(connectionString: string): Promise<string> {
  const several = hostsOf(connectionString);
  if (!several) return connectionString;
  const { host, port } = await primaryOf(several.hosts).find(several.hosts, several.connectionString);
  const url = new URL(several.connectionString);
  url.hostname = host.includes(":") ? `[${host}]` : host;
  url.port = String(port);
  return url.href;
}
