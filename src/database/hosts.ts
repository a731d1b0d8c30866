/** Finds the primary among several hosts; see src/base/databaseHosts.ts. */
import { setTimeout as pause } from "node:timers/promises";
import { Client } from "pg";
import { type Host, hostsOf, hostText } from "../base/databaseHosts.ts";

/** Milliseconds that a host has to answer. */
const PROBE_MS = 1_500;
/** Milliseconds between two rounds in which no host accepted writes. */
const ROUND_MS = 100;
/** Milliseconds between two questions whether another host has become the primary. */
const WATCH_MS = 1_000;

/** The primary among hosts, as far as this process knows. */
class Primary {
  readonly #hosts: readonly Host[];
  #known: Host | undefined;
  /** The latest that a host accepted writes on: what is on an earlier one is a former primary that came back. */
  #timeline = 0;
  #finding: Promise<Host> | undefined;
  /** Functions that disconnect clients, with the hosts that they are connected to. */
  readonly #clients = new Map<() => void, Host>();
  #isWatching = false;

  constructor(hosts: readonly Host[]) {
    this.#hosts = hosts;
  }

  /** @throws Error if no host accepts writes */
  find(connectionString: string): Promise<Host> {
    if (this.#known) return Promise.resolve(this.#known);
    this.#finding ??= this.#find(connectionString).finally(() => (this.#finding = undefined));
    return this.#finding;
  }

  /** The host could not be reached, or is a standby. */
  forget(host: Host): void {
    if (this.#known === host) this.#known = undefined;
  }

  /**
   * Keeps a client that is connected to a host from staying there when another one has become the primary.
   * @param leave disconnects it
   * @returns to be called when it has disconnected
   */
  joined(host: Host, connectionString: string, leave: () => void): () => void {
    this.#clients.set(leave, host);
    if (!this.#isWatching) this.#watch(connectionString).catch(() => {});
    return () => void this.#clients.delete(leave);
  }

  async #find(connectionString: string): Promise<Host> {
    const answers = await this.#ask(connectionString);
    const primary = this.#choose(answers);
    if (primary) return (this.#known = primary);
    // Waiting callers retry immediately.
    await pause(ROUND_MS);
    const reasons = answers.map(
      ({ host, reason }) => `${hostText(host)}: ${reason ?? "a former primary that came back"}`,
    );
    throw new Error(`None of the hosts accepts writes (${reasons.join("; ")}).`);
  }

  #ask(connectionString: string): Promise<Answer[]> {
    return Promise.all(
      this.#hosts.map(async (host) => ({ host, ...(await timelineOf(host, connectionString)) })),
    );
  }

  /** The host with the latest timeline, if it is not earlier than one that was seen. */
  #choose(answers: readonly Answer[]): Host | undefined {
    const [latest] = answers.toSorted((one, other) => (other.timeline ?? 0) - (one.timeline ?? 0));
    if (!latest?.timeline || latest.timeline < this.#timeline) return undefined;
    this.#timeline = latest.timeline;
    return latest.host;
  }

  /** Asks as long as a client is connected. */
  async #watch(connectionString: string): Promise<void> {
    this.#isWatching = true;
    while (this.#clients.size > 0) {
      await pause(WATCH_MS, undefined, { ref: false });
      const before = this.#timeline;
      const primary = this.#choose(await this.#ask(connectionString));
      if (!primary || this.#timeline === before) continue;
      this.#known = primary;
      for (const [leave, host] of this.#clients) if (host !== primary) leave();
    }
    this.#isWatching = false;
  }
}

interface Answer {
  readonly host: Host;
  readonly timeline?: number;
  readonly reason?: string;
}

const primaries = new Map<string, Primary>();

/** The one of these hosts. */
export function primaryOf(hosts: readonly Host[]): Primary {
  const key = hosts.map(hostText).join(",");
  const known = primaries.get(key) ?? new Primary(hosts);
  primaries.set(key, known);
  return known;
}

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
  const { host, port } = await primaryOf(several.hosts).find(several.connectionString);
  const url = new URL(several.connectionString);
  url.hostname = host.includes(":") ? `[${host}]` : host;
  url.port = String(port);
  return url.href;
}
