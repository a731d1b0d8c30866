/**
 * Admission control: how much of each resource is in use at once in one process, and how it is shared. Whoever is not admitted
 * at once waits; see {@link FairSemaphore} for the order.
 */
import { FairSemaphore } from "./fairSemaphore.ts";

/** Operations of this cost and above are large: their rows and answers are in memory at the same time. */
export const LARGE_COST = 5_000;

/** Operations, from the first look at their document to the end of their answer. */
export const operations = new FairSemaphore({
  // More than the connections of the database can serve, so that those which wait for something else do not keep it idle.
  capacity: 64,
  // What a browser sends to one host at once, and some.
  perParty: 8,
  // A quarter is for who has none under way.
  reserved: 16,
  strangers: 16,
  queuePerParty: 256,
  queuePerGroup: 512,
  timeoutMs: 15_000,
});

/**
 * How long an operation that was refused with RATE_LIMITED, or refused to a stranger for whatever reason, keeps its unit of
 * {@link operations} after its answer, in milliseconds: who asks again at once, or guesses, is refused 80 times a second instead of as
 * often as the event loop is able to.
 */
export const REFUSAL_HOLD_MS = 100;

/** Large operations; each is in {@link operations} too. Four at 3 MB of text are about 100 MB of rows, objects and text. */
export const largeOperations = new FairSemaphore({
  capacity: 4,
  perParty: 2,
  reserved: 1,
  strangers: 2,
  timeoutMs: 15_000,
});

/** Introspection queries in a text that nobody sent before: each takes up to 100 ms of the event loop in one piece. */
export const introspections = new FairSemaphore({ capacity: 1, timeoutMs: 15_000 });
/** How long such a query keeps its unit after it was answered, in milliseconds: 15 of them a minute. */
export const INTROSPECTION_HOLD_MS = 4_000;

/**
 * Hashes of passwords. Each takes 19 MiB and one of libuv's four threads, of which two are left to files and cryptography. The
 * groups are "sign-in" and "sign-up", the parties networks.
 */
export const passwordHashes = new FairSemaphore({
  capacity: 2,
  queuePerParty: 20,
  queuePerGroup: 500,
  timeoutMs: 10_000,
});

/**
 * Hashes for new accounts and new passwords of strangers, each of which is in {@link passwordHashes} too: of its two units they never
 * have both, so that nobody who signs in waits for one of them.
 */
export const strangersHashes = new FairSemaphore({
  capacity: 1,
  queuePerParty: 20,
  queuePerGroup: 500,
  timeoutMs: 10_000,
});

/** Answers that are being compressed: each has one of libuv's four threads. Who waits longer gets the text as it is; see compression.ts. */
export const compressions = new FairSemaphore({
  capacity: 1,
  queuePerParty: 8,
  queuePerGroup: 64,
  timeoutMs: 1_000,
});

/** Connections that begin in one iteration of the event loop, by network; see listen.ts. */
export const handshakes = new FairSemaphore({ capacity: 1 });

/** Look-ups of tokens, by network: a flood of requests from one waits for itself before it waits for a connection. */
export const authentications = new FairSemaphore({ capacity: 4, timeoutMs: 10_000 });

/** Look-ups of registered documents that the process has not met yet, by viewer or network; see trustedDocuments.ts. */
export const documentLookups = new FairSemaphore({
  capacity: 2,
  queuePerParty: 256,
  queuePerGroup: 1_024,
  timeoutMs: 10_000,
});

/**
 * Requests to pages beside the API that ask the database, by network: links of mails, calendars, addresses of files, and what providers
 * tell before it is known whether it is theirs.
 */
export const pageRequests = new FairSemaphore({
  capacity: 8,
  perParty: 2,
  queuePerParty: 256,
  queuePerGroup: 1_024,
  timeoutMs: 10_000,
});

/** Bytes of request bodies that are being read, parsed or wait to be answered. */
export const requestBodies = new FairSemaphore({
  // Parsed values take several times as much: a seventh of what the process may use.
  capacity: 96_000_000,
  // Two of the largest of a signed-in viewer.
  perParty: 24_000_000,
  strangers: 24_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});
/** Bodies up to so many bytes are not counted in {@link requestBodies}. */
export const SMALL_BODY = 16_384;

/** Bytes of files on their way in, by viewer. They go to the disk, of which so much stays in use by them at a time. */
export const uploadsOfViewers = new FairSemaphore({
  capacity: 2_000_000_000,
  perParty: 250_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});
/** The same by organization, whose members share it. */
export const uploadsOfOrganizations = new FairSemaphore({
  capacity: Infinity,
  perParty: 500_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});

/**
 * Connections of a pool that operations use.
 * @param poolSize what shares are of
 * @param capacity what operations have of it; the rest is for finding out who asks
 */
export function connectionShares(poolSize: number, capacity: number): FairSemaphore {
  const share = (part: number) => Math.max(1, Math.floor(poolSize * part));
  return new FairSemaphore({
    capacity: Math.max(1, capacity),
    perParty: share(0.4),
    reserved: capacity > 4 ? 2 : 0,
    strangers: share(0.3),
    timeoutMs: 15_000,
  });
}

/** The event loop: what is done there in one piece that takes more than a few milliseconds; see eventLoop.ts. */
export const eventLoopShare = {
  /** The part of the time that all such pieces together have; the rest is for everything that is short. */
  share: 0.25,
  /** Milliseconds of such work that a process does without a pause after it had none for a while. */
  burstMs: 150,
  /**
   * Pieces up to so many milliseconds count as long as they take. What others wait for a piece grows with the square of its
   * length, and so does what a longer one counts: pieces of 40 ms have a quarter of the share. Those from 100 ms on count ten times.
   */
  shortMs: 10,
  mostTimes: 10,
} as const;

/**
 * Operations whose request has a body of so many bytes or more read their values, and write them for the database, in pieces of the event
 * loop's share: 100 KB take about 7 ms.
 */
export const LARGE_INPUT = 32_000;

/** Bodies from this size on, in bytes, are large: they are parsed within the event loop's share, and read at a bounded rate. */
export const LARGE_BODY = 256_000;
/** Bytes of large bodies a second: to decrypt and read them takes about an eighth of the event loop at this rate. */
export const LARGE_BODY_RATE = 15_000_000;
