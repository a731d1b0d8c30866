/**
 * Admission control: how much of each resource one process uses at once, and how it is shared. Requests that are not
 * admitted at once wait; see {@link FairSemaphore} for the order.
 */
import { FairSemaphore } from "./fairSemaphore.ts";

/** Operations with at least this cost are large: their rows and responses are in memory at the same time. */
export const LARGE_COST = 5_000;

/** Operations, from parsing their document to the end of their response. */
export const operations = new FairSemaphore({
  // More than the database connections can serve, so that operations waiting for something else do not leave it idle.
  capacity: 64,
  // Slightly more than a browser sends to one host at once.
  perParty: 8,
  // A quarter is reserved for parties without any.
  reserved: 16,
  visitors: 16,
  queuePerParty: 256,
  queuePerGroup: 512,
  timeoutMs: 15_000,
});

/**
 * Milliseconds for which an operation keeps its unit of {@link operations} after its response if it was refused with
 * RATE_LIMITED, or was refused to a visitor for any reason. So clients that retry immediately, or guess, are refused
 * at most 80 times a second.
 */
export const REFUSAL_HOLD_MS = 100;

/**
 * Large operations; each also counts in {@link operations}. Four at 3 MB of text are about 100 MB of rows, objects
 * and text.
 */
export const largeOperations = new FairSemaphore({
  capacity: 4,
  perParty: 2,
  reserved: 1,
  visitors: 2,
  timeoutMs: 15_000,
});

/** Introspection queries in new documents: each blocks the event loop for up to 100 ms. */
export const introspections = new FairSemaphore({ capacity: 1, timeoutMs: 15_000 });
/** Milliseconds for which such a query keeps its unit after its response: 15 per minute. */
export const INTROSPECTION_HOLD_MS = 4_000;

/**
 * Password hashes. Each takes 19 MiB and one of libuv's four threads, two of which are left to files and
 * cryptography. The groups are "sign-in" and "sign-up", the parties networks.
 */
export const passwordHashes = new FairSemaphore({
  capacity: 2,
  queuePerParty: 20,
  queuePerGroup: 500,
  timeoutMs: 10_000,
});

/**
 * Hashes for new accounts and new passwords of visitors, each of which also counts in {@link passwordHashes}: they
 * never have both of its units, so that nobody who signs in waits for them.
 */
export const visitorHashes = new FairSemaphore({
  capacity: 1,
  queuePerParty: 20,
  queuePerGroup: 500,
  timeoutMs: 10_000,
});

/**
 * Responses being compressed: each takes one of libuv's four threads. After a longer wait the text is sent
 * uncompressed; see compression.ts.
 */
export const compressions = new FairSemaphore({
  capacity: 1,
  queuePerParty: 8,
  queuePerGroup: 64,
  timeoutMs: 1_000,
});

/** Connections accepted per iteration of the event loop, by network; see listen.ts. */
export const handshakes = new FairSemaphore({ capacity: 1 });

/**
 * Requests until their response begins, by network: the others of a network wait, without work for anybody. What they
 * need is limited further by viewer; see below.
 */
export const requests = new FairSemaphore({ capacity: Infinity, perParty: 64, queuePerParty: 2_048 });
/** Milliseconds after which a request no longer counts in {@link requests}, such as a long upload. */
export const REQUEST_HOLD_MS = 1_000;
/** Requests begun per iteration of the event loop, by network; see requestTurns.ts. Each takes some 0.2 ms at first. */
export const requestStarts = new FairSemaphore({ capacity: 8 });
/** Requests of a connection whose response is not complete: clients other than load generators send one at a time. */
export const MOST_PIPELINED = 20;

/** Short messages of WebSockets answered per iteration of the event loop, by network; see webSocketTurns.ts. */
export const webSocketMessages = new FairSemaphore({ capacity: 1 });
/** Messages from this size on, in bytes, are parsed and answered within the event loop's share. */
export const LARGE_MESSAGE = 8_000;

/** Token lookups, by network: a flood of requests from one network only delays itself. */
export const authentications = new FairSemaphore({ capacity: 4, timeoutMs: 10_000 });

/** Lookups of registered documents that are not cached, by viewer or network; see trustedDocuments.ts. */
export const documentLookups = new FairSemaphore({
  capacity: 2,
  queuePerParty: 256,
  queuePerGroup: 1_024,
  timeoutMs: 10_000,
});

/**
 * Requests that query the database outside of the API, by network: mail links, calendars, file URLs, and provider
 * webhooks before their signature is verified.
 */
export const pageRequests = new FairSemaphore({
  capacity: 8,
  perParty: 2,
  queuePerParty: 256,
  queuePerGroup: 1_024,
  timeoutMs: 10_000,
});

/** Bytes of request bodies that are being read or parsed, or whose response is pending. */
export const requestBodies = new FairSemaphore({
  // Parsed values take several times as much: a seventh of the memory limit of the process.
  capacity: 96_000_000,
  // Two of the largest bodies of a signed-in viewer.
  perParty: 24_000_000,
  visitors: 24_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});
/** Bodies up to this size do not count in {@link requestBodies}. */
export const SMALL_BODY = 16_384;

/** Bytes of uploads in progress, by viewer. They are written to disk, which limits how much is in use at a time. */
export const uploadsOfViewers = new FairSemaphore({
  capacity: 2_000_000_000,
  perParty: 250_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});
/** The same by organization, shared by its members. */
export const uploadsOfOrganizations = new FairSemaphore({
  capacity: Infinity,
  perParty: 500_000_000,
  queuePerParty: 16,
  timeoutMs: 20_000,
});

/**
 * Connections of a pool used by operations.
 * @param poolSize basis of the shares
 * @param capacity available to operations; the rest is for authentication
 */
export function connectionShares(poolSize: number, capacity: number): FairSemaphore {
  const share = (part: number) => Math.max(1, Math.floor(poolSize * part));
  return new FairSemaphore({
    capacity: Math.max(1, capacity),
    perParty: share(0.4),
    reserved: capacity > 4 ? 2 : 0,
    visitors: share(0.3),
    timeoutMs: 15_000,
  });
}

/** The event loop: CPU-heavy pieces of work of more than a few milliseconds; see eventLoop.ts. */
export const eventLoopShare = {
  /** Share of the time for all such pieces together; the rest is for short work. */
  share: 0.25,
  /** Milliseconds of such work that a process may do without a pause after an idle period. */
  burstMs: 150,
  /**
   * Pieces up to this many milliseconds are charged as long as they take. The delay that a piece causes others grows
   * with the square of its length, and so does the charge for longer ones: pieces of 40 ms get a quarter of the
   * share. From 100 ms on they are charged ten times.
   */
  shortMs: 10,
  mostTimes: 10,
} as const;

/**
 * Operations with at least this body size read and convert their variables within the event loop's share: 100 KB take
 * about 7 ms.
 */
export const LARGE_INPUT = 32_000;

/**
 * Bodies from this size on, in bytes, are large: they are parsed within the event loop's share, and read at a limited
 * rate.
 */
export const LARGE_BODY = 256_000;
/**
 * Bytes of large bodies per second: at this rate, decrypting and reading them takes about an eighth of the event
 * loop.
 */
export const LARGE_BODY_RATE = 15_000_000;
