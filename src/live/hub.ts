/**
 * Live events of a process: commit notifications, a feed per organization and set of claims, and the tokens of
 * subscribers, which are checked twice a second.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Authenticator, Bearer } from "../auth/authenticate.ts";
import type { Claims } from "../database/claims.ts";
import type { ListenConnection } from "../database/listener.ts";
import { DatabaseConnectionError } from "../database/databaseErrors.ts";
import { fromSqlError } from "../database/sqlErrors.ts";
import { CodedError } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { Batch } from "./batch.ts";
import { Commits } from "./commits.ts";
import { Feed, type Subscriber } from "./feed.ts";
import { Feeds, keyOf } from "./feeds.ts";
import { type LiveNumbers, liveLags } from "./liveNumbers.ts";
import { EventReads, type StreamStart } from "./eventReads.ts";

export interface HubOptions {
  /** Connection string of plat_authenticator. */
  connectionString: string;
  /** Shared listener connection; default: a connection of its own, opened with the first stream. */
  listenConnection?: ListenConnection | undefined;
  authenticator: Pick<Authenticator, "again">;
  log: Logger;
  /** Interval of checks for changed tokens and missed commits, in milliseconds. */
  lookEveryMs?: number;
}

/** A token with the subscribers that use it. */
interface Bearing {
  bearer: Bearer;
  /** Version of its access, from EventReads.changed; empty if it must be determined again. */
  version: string;
  /** Whether the version is known. It is determined before anything is read, so that later changes are noticed. */
  isKnown: Promise<void>;
  readonly streams: Set<Stream>;
}

interface Stream {
  readonly subscriber: Subscriber;
  readonly organizationId: string;
  readonly bearing: Bearing;
  feed: Feed;
}

export interface Hub {
  /**
   * The organization of a stream, by id or slug, with its latest sequence number.
   * @throws CodedError NOT_FOUND if the viewer has no access to it
   */
  begin(claims: Claims, organization: string, project: string | undefined): Promise<StreamStart>;
  /**
   * Sends a subscriber all events after its position that its token may read, until it is removed or ended.
   * @throws CodedError UNAVAILABLE
   */
  add(subscriber: Subscriber, bearer: Bearer, organizationId: string): Promise<Subscription>;
  /** Open streams and feeds; reads and messages since the start. */
  readonly numbers: Readonly<LiveNumbers>;
  /** Ends all streams and refuses new ones. */
  drain(): void;
  stop(): Promise<void>;
}

export interface Subscription {
  delete(): void;
  /** A subscriber accepts data again. */
  resume(): void;
}

const LOOK_MS = 500;

const noPart = () =>
  new CodedError("FORBIDDEN", "You no longer have access to this organization, so the stream has ended.");
const unreachable = (error: unknown): never => {
  throw fromSqlError(new DatabaseConnectionError("08001", error), new Map(), { signedIn: true });
};
const stopping = () =>
  new CodedError("UNAVAILABLE", "The service is shutting down; connect again.", { retryAfterSeconds: 1 });

/** Creates the hub, which reads each event once per process for all subscribers. */
export const createHub = (options: HubOptions): Hub => new LiveHub(options);

class LiveHub implements Hub {
  readonly #options: HubOptions;
  readonly #reads: EventReads;
  readonly #commits: Commits;
  readonly #feeds = new Feeds((claims, organizationId) => this.#makeFeed(claims, organizationId));
  /** By token. */
  readonly #bearings = new Map<string, Bearing>();
  readonly #counts = { streams: 0, reads: 0, deliveries: 0 };
  readonly #stopped = new AbortController();
  #looking: Promise<void> | undefined;
  #isDrained = false;

  constructor(options: HubOptions) {
    const { connectionString, listenConnection, log } = options;
    this.#options = options;
    this.#reads = new EventReads(connectionString, log);
    this.#commits = new Commits({
      connectionString,
      listenConnection,
      log,
      followed: () => this.#feeds.organizations(),
      committed: (organizationId, sequence) => this.#feeds.call(organizationId, sequence),
    });
  }

  get numbers(): LiveNumbers {
    return { ...this.#counts, feeds: this.#feeds.size };
  }

  async begin(claims: Claims, organization: string, project: string | undefined): Promise<StreamStart> {
    const beginning = await this.#reads.begin(claims, organization, project);
    if (!beginning)
      throw new CodedError(
        "NOT_FOUND",
        "There is no such organization, or this token does not give access to it.",
        { field: "organizationId" },
      );
    return beginning;
  }

  async add(subscriber: Subscriber, bearer: Bearer, organizationId: string): Promise<Subscription> {
    if (this.#isDrained) throw stopping();
    const bearing = this.#bearingOf(bearer);
    const feed = this.#feeds.of(bearing.bearer.claims, organizationId);
    const stream: Stream = { subscriber, organizationId, bearing, feed };
    bearing.streams.add(stream);
    this.#counts.streams += 1;
    try {
      await bearing.isKnown;
      // Until the connection is restored, polling finds new commits.
      await this.#commits.follow(organizationId).catch(unreachable);
    } catch (error) {
      this.#remove(stream);
      throw error;
    }
    // It may have ended meanwhile.
    if (bearing.streams.has(stream)) stream.feed.add(subscriber);
    this.#looking ??= this.#keepLooking();
    return { delete: () => this.#remove(stream), resume: () => stream.feed.resume() };
  }

  drain(): void {
    this.#isDrained = true;
    for (const bearing of [...this.#bearings.values()]) this.#end(bearing, stopping());
  }

  async stop(): Promise<void> {
    this.drain();
    this.#stopped.abort();
    await this.#looking;
    await this.#commits.end();
    await this.#reads.end();
  }

  #makeFeed(claims: Claims, organizationId: string): Feed {
    const feed: Feed = new Feed({
      read: (after, most, lane) => {
        this.#counts.reads += 1;
        return this.#reads.events(claims, organizationId, { after, most, lane });
      },
      lost: () => this.#end(feed, noPart()),
      failed: (error) => this.#failed(error),
      told: (batch, subscribers) => this.#told(batch, subscribers),
    });
    return feed;
  }

  #told(batch: Batch, subscribers: number): void {
    this.#counts.deliveries += batch.events.length * subscribers;
    if (!liveLags.hasSubscribers) return;
    const now = Date.now();
    for (const { occurredAt } of batch.events) liveLags.publish(Math.max(0, now - occurredAt) / 1000);
  }

  #failed(error: unknown): void {
    if (this.#stopped.signal.aborted) return;
    this.#options.log.warn(
      { event: "live.read_failed", err: error },
      "Reading events for streams failed; retrying.",
    );
  }

  #remove(stream: Stream): void {
    const { bearing, feed, subscriber, organizationId } = stream;
    if (!bearing.streams.delete(stream)) return;
    this.#counts.streams -= 1;
    feed.delete(subscriber);
    if (bearing.streams.size === 0) this.#bearings.delete(tokenKey(bearing.bearer));
    this.#tidy(organizationId);
  }

  #tidy(organizationId: string): void {
    if (this.#feeds.tidy(organizationId)) this.#commits.unfollow(organizationId);
  }

  /** Ends the streams of a feed or token. */
  #end(of: Feed | Bearing, error: CodedError): void {
    for (const bearing of of instanceof Feed ? [...this.#bearings.values()] : [of])
      for (const stream of [...bearing.streams])
        if (stream.feed === of || bearing === of) {
          this.#remove(stream);
          stream.subscriber.end(error);
        }
  }

  #bearingOf(bearer: Bearer): Bearing {
    const key = tokenKey(bearer);
    const known = this.#bearings.get(key);
    if (known) return known;
    const made: Bearing = { bearer, version: "", isKnown: Promise.resolve(), streams: new Set() };
    const find = async () => {
      const [found] = await this.#changed([made]);
      // A token that has expired is found by the next check.
      made.version = found?.version ?? "";
    };
    made.isKnown = find();
    made.isKnown.catch(() => {}); // each of its streams is told
    this.#bearings.set(key, made);
    return made;
  }

  #changed(looked: readonly Bearing[]) {
    return this.#reads.changed(
      looked.map(({ bearer }) => bearer.facts),
      looked.map(({ version }) => version),
    );
  }

  async #keepLooking(): Promise<void> {
    const { signal } = this.#stopped;
    const { lookEveryMs = LOOK_MS } = this.#options;
    while (!signal.aborted && this.#bearings.size > 0) {
      await this.#look().catch((error: unknown) => this.#failed(error));
      await pause(lookEveryMs, undefined, { signal }).catch(() => {});
    }
    this.#looking = undefined;
  }

  /** Checks for tokens that have expired or whose access has changed, and for events without a notification. */
  async #look(): Promise<void> {
    const now = Date.now() / 1000;
    for (const bearing of [...this.#bearings.values()])
      if ((bearing.bearer.expiresAt ?? Infinity) <= now)
        this.#end(bearing, new CodedError("UNAUTHENTICATED", "The token has expired; sign in again."));
    const looked = [...this.#bearings.values()];
    if (looked.length === 0) return;
    await Promise.all(
      (await this.#changed(looked)).map(({ number, version }) => this.#renew(looked[number - 1]!, version)),
    );
    const positions = this.#feeds.positions();
    for (const id of await this.#reads.moved(positions)) this.#feeds.call(id, positions.get(id)! + 1);
    this.#feeds.resume();
  }

  /** Determines what a token currently gives access to. */
  async #renew(bearing: Bearing, version: string | null): Promise<void> {
    let claims: Claims;
    try {
      claims = await this.#options.authenticator.again(bearing.bearer.facts);
    } catch (error) {
      if (error instanceof CodedError && error.code === "UNAUTHENTICATED") return this.#end(bearing, error);
      // The next check retries.
      return this.#failed(error);
    }
    // A token that expired and became valid again is checked once more.
    bearing.version = version ?? "";
    const isOther = keyOf(claims) !== keyOf(bearing.bearer.claims);
    bearing.bearer = { ...bearing.bearer, claims };
    for (const stream of bearing.streams)
      if (isOther) this.#move(stream, claims);
      else stream.feed.call();
  }

  /** Switches a stream to other claims. */
  #move(stream: Stream, claims: Claims): void {
    stream.feed.delete(stream.subscriber);
    stream.feed = this.#feeds.of(claims, stream.organizationId);
    stream.feed.add(stream.subscriber);
    this.#tidy(stream.organizationId);
  }
}

/** Key of a token in this class. */
function tokenKey({ facts: { userId, sessionId, tokenSha256 } }: Bearer): string {
  return tokenSha256 ? tokenSha256.toString("base64") : `${userId} ${sessionId}`;
}
