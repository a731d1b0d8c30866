/**
 * Receives notifications of commits in followed organizations. Processes with background work use their shared
 * listener connection; others open a connection of their own with the first stream.
 */
import type { Logger } from "../base/log.ts";
import { type Line, type ListenConnection, type Listener, openListener } from "../database/listener.ts";

export interface CommitsOptions {
  /** Connection string of plat_authenticator. */
  connectionString: string;
  /** Shared listener connection; default: a connection of its own. */
  listenConnection?: ListenConnection | undefined;
  log: Logger;
  /** Currently followed organizations. */
  followed: () => Iterable<string>;
  /** Called for each commit with the latest sequence number of the organization. */
  committed: (organizationId: string, sequence: number) => void;
}

export class Commits {
  readonly #options: CommitsOptions;
  /** Organizations that the database sends notifications for. */
  readonly #listened = new Set<string>();
  #opening: Promise<Listener> | undefined;
  #listener: Listener | undefined;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /**
   * Subscribes to the commits of an organization. If the connection is broken, reconnecting subscribes; polling finds
   * commits missed meanwhile.
   * @throws if the database is unreachable on the first connection
   */
  async follow(organizationId: string): Promise<void> {
    const line = (await this.#open()).current();
    // Perhaps nobody follows it any longer.
    if (line && [...this.#options.followed()].includes(organizationId))
      await this.#listen(organizationId, line).catch(() => {});
  }

  /** A broken connection loses its subscriptions. */
  unfollow(organizationId: string): void {
    if (!this.#listened.delete(organizationId)) return;
    this.#listener
      ?.current()
      ?.query("select app_private.unlisten_to_events($1)", [organizationId])
      .catch(() => {});
  }

  async end(): Promise<void> {
    await this.#opening?.catch(() => {});
    await this.#listener?.end();
  }

  #open(): Promise<Listener> {
    const { connectionString, listenConnection, log, followed, committed } = this.#options;
    const own = { connectionString, applicationName: "plat-live-calls", log };
    this.#opening ??= openListener(listenConnection, own, {
      listensOnly: true,
      listen: {
        channel: "plat_events",
        called: (payload = "") => {
          const [organizationId = "", sequence] = payload.split(" ");
          committed(organizationId, Number(sequence));
        },
      },
      connected: async (line) => {
        this.#listened.clear();
        for (const organizationId of followed()) await this.#listen(organizationId, line);
      },
    }).then(
      (listener) => (this.#listener = listener),
      (error: unknown) => {
        this.#opening = undefined;
        throw error;
      },
    );
    return this.#opening;
  }

  async #listen(organizationId: string, { query }: Pick<Line, "query">): Promise<void> {
    if (this.#listened.has(organizationId)) return;
    this.#listened.add(organizationId);
    await query("select app_private.listen_to_events($1)", [organizationId]);
  }
}
