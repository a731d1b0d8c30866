/**
 * Hears of the commits of organizations whose events somebody follows. A process that runs background work hears of them on the connection of
 * that; another one has a connection of its own, from the first stream on.
 */
import type { Logger } from "../base/log.ts";
import { type Line, type ListenConnection, type Listener, openListener } from "../database/listener.ts";

export interface CommitsOptions {
  /** That of plat_authenticator. */
  connectionString: string;
  /** The connection of the process that listens; one of its own where omitted. */
  listenConnection?: ListenConnection | undefined;
  log: Logger;
  /** Organizations that are followed now. */
  followed: () => Iterable<string>;
  /** Told of a commit, with the last sequence of the organization. */
  committed: (organizationId: string, sequence: number) => void;
}

export class Commits {
  readonly #options: CommitsOptions;
  /** Organizations whose commits the database notifies of. */
  readonly #listened = new Set<string>();
  #opening: Promise<Listener> | undefined;
  #listener: Listener | undefined;

  constructor(options: CommitsOptions) {
    this.#options = options;
  }

  /**
   * Has the database notify of an organization's commits. Where the connection is broken, its repair does; what was committed meanwhile is for
   * others to find.
   * @throws where the database cannot be reached for the first time
   */
  async follow(organizationId: string): Promise<void> {
    const line = (await this.#open()).current();
    // Nobody may follow it any more.
    if (line && [...this.#options.followed()].includes(organizationId))
      await this.#listen(organizationId, line).catch(() => {});
  }

  /** A connection that breaks listens to nothing any more. */
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
