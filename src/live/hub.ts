/**
 * What a process has of live events: one connection that hears of commits, one small pool that reads, a feed for each organization and
 * set of claims, and the tokens of those who are told, which are looked at twice a second.
 */
import { setTimeout as pause } from "node:timers/promises";
import type { Pool } from "pg";
import type { Authenticator, Bearer } from "../auth/authenticate.ts";
import { pgSettings, type Claims } from "../database/claims.ts";
import type { ListenConnection } from "../database/listener.ts";
import { makeFusedAdaptor } from "../database/fusedAdaptor.ts";
import { DatabaseConnectionError } from "../database/databaseErrors.ts";
import { makePool } from "../database/pool.ts";
import { fromSqlError } from "../database/sqlErrors.ts";
import { CodedError } from "../base/errors.ts";
import { FairSemaphore } from "../admission/fairSemaphore.ts";
import { organizationParty, partyOf } from "../admission/party.ts";
import type { Logger } from "../base/log.ts";
import { Batch, type LiveEvent } from "./batch.ts";
import { Commits } from "./commits.ts";
import { Feed, type Subscriber } from "./feed.ts";
import { type LiveNumbers, liveLags } from "./numbers.ts";

export interface HubOptions {
  /** That of plat_authenticator. */
  connectionString: string;
  /** The connection of the process that listens; one of its own, from the first stream on, where omitted. */
  listenConnection?: ListenConnection | undefined;
  authenticator: Pick<Authenticator, "again">;
  log: Logger;
  /** How often tokens are looked at, and commits that nobody heard of, in milliseconds. */
  lookEveryMs?: number;
}

/** Where a stream is to begin. */
export interface Beginning {
  readonly organizationId: string;
  readonly projectId: string | undefined;
  readonly head: number;
}

/** A token with what is told in its name. */
interface Bearing {
  bearer: Bearer;
  /** Of its access, as app_private.changed_viewers tells it; empty where it is to be found anew. */
  version: string;
  /** Whether that is known: before anything is read, so that whatever changes later is noticed. */
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
   * The organization that a stream is to be of, by its id or slug, and its last sequence.
   * @throws CodedError NOT_FOUND where the viewer has no part in it
   */
  begin(claims: Claims, organization: string, project: string | undefined): Promise<Beginning>;
  /**
   * Tells a subscriber of all events behind its position that its token may read, until it is deleted or ended.
   * @throws CodedError UNAVAILABLE
   */
  add(subscriber: Subscriber, bearer: Bearer, organizationId: string): Promise<Subscription>;
  /** Streams and feeds that are open, reads and messages since the start. */
  readonly numbers: LiveNumbers;
  /** Ends all streams, and refuses others. */
  drain(): void;
  stop(): Promise<void>;
}

export interface Subscription {
  delete(): void;
  /** The subscriber takes more again. */
  resume(): void;
}

const LOOK_MS = 500;

/** Row of app_hidden.read_events. */
type EventRow = [
  sequence: string,
  name: string,
  projectId: string | null,
  subjectType: string,
  subjectId: string,
  occurredAt: string,
  message: string | null,
  head: string | null,
];

/** What of claims decides what is read: sessions of a user read alike. */
const keyOf = ({ userId, tokenId, organizationId, scopes, secondFactorWithholds }: Claims): string =>
  JSON.stringify([userId, tokenId, organizationId, scopes, secondFactorWithholds]);

const noPart = () =>
  new CodedError("FORBIDDEN", "You have no part in this organization any more, so the stream has ended.");
const unreachable = (error: unknown): never => {
  throw fromSqlError(new DatabaseConnectionError("08001", error), new Map(), { signedIn: true });
};
const stopping = () =>
  new CodedError("UNAVAILABLE", "The service is stopping; connect again.", { retryAfterSeconds: 1 });

export function createHub(options: HubOptions): Hub {
  const { connectionString, listenConnection, authenticator, log, lookEveryMs = LOOK_MS } = options;
  const pool: Pool = makePool({
    connectionString,
    max: 2,
    applicationName: "plat-live",
    genericPlans: true,
    onError: (error) =>
      log.warn(
        { event: "database.connection_lost", err: error },
        "A database connection was lost; the pool opens another one.",
      ),
  });
  const withPgClient = makeFusedAdaptor().createWithPgClient({ pool });
  // One connection each, which the looks share; nobody's many sets of claims hold up another organization.
  const lanes = {
    live: new FairSemaphore({ capacity: 1 }),
    behind: new FairSemaphore({ capacity: 1 }),
  };
  /** By organization, then by claims. */
  const feeds = new Map<string, Map<string, Feed>>();
  /** By token. */
  const bearings = new Map<string, Bearing>();
  const numbers: LiveNumbers = { streams: 0, feeds: 0, reads: 0, deliveries: 0 };
  let looking: Promise<void> | undefined;
  let isDrained = false;
  const stopped = new AbortController();

  const commits = new Commits({
    connectionString,
    listenConnection,
    log,
    followed: () => feeds.keys(),
    committed: (organizationId, sequence) => {
      for (const feed of feeds.get(organizationId)?.values() ?? []) feed.call(sequence);
    },
  });

  const settingsOf = (claims: Claims) => {
    const { sessionId: _, ...rest } = claims;
    return pgSettings({ ...rest, readOnly: true }, { requestId: "live", channel: "API" });
  };

  async function asViewer<Row>(
    claims: Claims,
    name: string,
    text: string,
    values: unknown[],
  ): Promise<Row[]> {
    const { rows } = await withPgClient(settingsOf(claims), (client) =>
      client.query<Row>({ text, name, values, arrayMode: true } as never),
    );
    return rows as unknown as Row[];
  }

  function makeFeed(claims: Claims, organizationId: string): Feed {
    const feed: Feed = new Feed({
      async read(after, most, lane) {
        const party = lane === "live" ? organizationParty(organizationId) : partyOf(claims.userId, undefined);
        const release = await lanes[lane].acquire(party);
        try {
          numbers.reads++;
          const rows = await asViewer<EventRow>(
            claims,
            "read_events",
            `select sequence, name, project_id, subject_type, subject_id, extract(epoch from occurred_at) * 1000, message, head
             from app_hidden.read_events($1, $2, $3)`,
            [organizationId, after, most],
          );
          return toBatch(after, rows);
        } finally {
          release();
        }
      },
      lost: () => end(feed, noPart()),
      failed,
      told: (batch, subscribers) => {
        numbers.deliveries += batch.events.length * subscribers;
        if (!liveLags.hasSubscribers) return;
        const now = Date.now();
        for (const { occurredAt } of batch.events) liveLags.publish(Math.max(0, now - occurredAt) / 1000);
      },
    });
    return feed;
  }

  function feedOf(claims: Claims, organizationId: string): Feed {
    let ofOrganization = feeds.get(organizationId);
    if (!ofOrganization) feeds.set(organizationId, (ofOrganization = new Map()));
    const key = keyOf(claims);
    let feed = ofOrganization.get(key);
    if (!feed) {
      ofOrganization.set(key, (feed = makeFeed(claims, organizationId)));
      numbers.feeds++;
    }
    return feed;
  }

  /** Gives up what nobody is told of any more. */
  function tidy(organizationId: string): void {
    const ofOrganization = feeds.get(organizationId);
    if (!ofOrganization) return;
    for (const [key, feed] of ofOrganization)
      if (feed.isEmpty) {
        ofOrganization.delete(key);
        numbers.feeds--;
      }
    if (ofOrganization.size > 0) return;
    feeds.delete(organizationId);
    commits.unfollow(organizationId);
  }

  function remove(stream: Stream): void {
    const { bearing, feed, subscriber, organizationId } = stream;
    if (!bearing.streams.delete(stream)) return;
    numbers.streams--;
    feed.delete(subscriber);
    if (bearing.streams.size === 0) bearings.delete(tokenKey(bearing.bearer));
    tidy(organizationId);
  }

  /** Ends streams of a feed, or of a token. */
  function end(of: Feed | Bearing, error: CodedError): void {
    for (const bearing of of instanceof Feed ? [...bearings.values()] : [of])
      for (const stream of [...bearing.streams])
        if (stream.feed === of || bearing === of) {
          remove(stream);
          stream.subscriber.end(error);
        }
  }

  function failed(error: unknown): void {
    if (stopped.signal.aborted) return;
    log.warn({ event: "live.read_failed", err: error }, "Reading events for streams failed; retrying.");
  }

  /** Those whose access is of another version than it was, with that; null where the token has ended. */
  async function changed(
    looked: readonly Bearing[],
  ): Promise<readonly { number: number; version: string | null }[]> {
    const facts = looked.map(({ bearer }) => bearer.facts);
    const { rows } = await pool.query<{ number: number; version: string | null }>({
      name: "changed_viewers",
      text: "select * from app_private.changed_viewers($1, $2, $3, $4)",
      values: [
        facts.map(({ userId }) => userId),
        facts.map(({ sessionId }) => sessionId),
        facts.map(({ tokenSha256 }) => tokenSha256),
        looked.map(({ version }) => version),
      ],
    });
    return rows;
  }

  function bearingOf(bearer: Bearer): Bearing {
    const key = tokenKey(bearer);
    const known = bearings.get(key);
    if (known) return known;
    const made: Bearing = { bearer, version: "", isKnown: Promise.resolve(), streams: new Set() };
    const find = async () => {
      const [found] = await changed([made]);
      // One that has ended is found by the next look.
      made.version = found?.version ?? "";
    };
    made.isKnown = find();
    made.isKnown.catch(() => {}); // each of its streams is told
    bearings.set(key, made);
    return made;
  }

  /** Looks for tokens that have ended or stand for something else, and for events that nobody was called for. */
  async function look(): Promise<void> {
    const now = Date.now() / 1000;
    for (const bearing of [...bearings.values()])
      if ((bearing.bearer.expiresAt ?? Infinity) <= now)
        end(bearing, new CodedError("UNAUTHENTICATED", "The token has expired; sign in again."));
    const looked = [...bearings.values()];
    if (looked.length === 0) return;
    await Promise.all(
      (await changed(looked)).map(({ number, version }) => renew(looked[number - 1]!, version)),
    );
    const places = [...feeds].map(([id, ofOrganization]) => {
      const positions = [...ofOrganization.values()].map(({ position }) => position ?? Infinity);
      return { id, position: Math.min(...positions) };
    });
    const followed = places.filter(({ position }) => position < Infinity);
    const moved = await pool.query<{ id: string }>({
      name: "moved_streams",
      text: "select app_private.moved_streams($1, $2) as id",
      values: [followed.map(({ id }) => id), followed.map(({ position }) => position)],
    });
    const positions = new Map(followed.map(({ id, position }) => [id, position]));
    for (const { id } of moved.rows)
      for (const feed of feeds.get(id)?.values() ?? []) feed.call(positions.get(id)! + 1);
    // Those whose last page could not be read.
    for (const ofOrganization of feeds.values()) for (const feed of ofOrganization.values()) feed.resume();
  }

  /** Finds out what a token stands for now. */
  async function renew(bearing: Bearing, version: string | null): Promise<void> {
    let claims: Claims;
    try {
      claims = await authenticator.again(bearing.bearer.facts);
    } catch (error) {
      if (error instanceof CodedError && error.code === "UNAUTHENTICATED") return end(bearing, error);
      // The next look tries again.
      return failed(error);
    }
    // One that ended just now, and is let in again, is looked at once more.
    bearing.version = version ?? "";
    const isOther = keyOf(claims) !== keyOf(bearing.bearer.claims);
    bearing.bearer = { ...bearing.bearer, claims };
    for (const stream of bearing.streams)
      if (isOther) {
        stream.feed.delete(stream.subscriber);
        stream.feed = feedOf(claims, stream.organizationId);
        stream.feed.add(stream.subscriber);
        tidy(stream.organizationId);
      } else stream.feed.call();
  }

  async function keepLooking(): Promise<void> {
    const { signal } = stopped;
    while (!signal.aborted && bearings.size > 0) {
      await look().catch(failed);
      await pause(lookEveryMs, undefined, { signal }).catch(() => {});
    }
    looking = undefined;
  }

  function drain(): void {
    isDrained = true;
    for (const bearing of [...bearings.values()]) end(bearing, stopping());
  }

  return {
    numbers,
    async begin(claims, organization, project) {
      const [row] = await asViewer<[string | null, string | null, string | null]>(
        claims,
        "begin_stream",
        "select organization_id, project_id, head from app_hidden.begin_stream($1, $2)",
        [organization, project ?? null],
      );
      const [organizationId, projectId, head] = row!;
      if (organizationId === null || head === null)
        throw new CodedError(
          "NOT_FOUND",
          "There is no such organization, or you have no part in it that this token gives.",
          { field: "organizationId" },
        );
      return { organizationId, projectId: projectId ?? undefined, head: Number(head) };
    },
    async add(subscriber, bearer, organizationId) {
      if (isDrained) throw stopping();
      const bearing = bearingOf(bearer);
      const feed = feedOf(bearing.bearer.claims, organizationId);
      const stream: Stream = { subscriber, organizationId, bearing, feed };
      bearing.streams.add(stream);
      numbers.streams++;
      try {
        await bearing.isKnown;
        // Until its connection is repaired, the looks find what was committed.
        await commits.follow(organizationId).catch(unreachable);
      } catch (error) {
        remove(stream);
        throw error;
      }
      // It may have ended meanwhile.
      if (bearing.streams.has(stream)) stream.feed.add(subscriber);
      looking ??= keepLooking();
      return { delete: () => remove(stream), resume: () => stream.feed.resume() };
    },
    drain,
    async stop() {
      drain();
      stopped.abort();
      await looking;
      await commits.end();
      await pool.end();
    },
  };
}

/** What a token is known by here. */
function tokenKey({ facts: { userId, sessionId, tokenSha256 } }: Bearer): string {
  return tokenSha256 ? tokenSha256.toString("base64") : `${userId} ${sessionId}`;
}

function toBatch(after: number, rows: readonly EventRow[]): Batch | undefined {
  const mark = rows.at(-1);
  if (!mark) return undefined;
  const events = rows
    .slice(0, -1)
    .map(([sequence, name, projectId, subjectType, subjectId, occurredAt, message]): LiveEvent => ({
      sequence: Number(sequence),
      name,
      projectId,
      subjectType,
      subjectId,
      occurredAt: Number(occurredAt),
      message: message!,
    }));
  return new Batch(after, Number(mark[0]), Number(mark[7]), events);
}
