import type { RequestHandler, Response } from "express";
import { pageRequests } from "../admission/semaphores.ts";
import type { FairSemaphore, Release } from "../admission/fairSemaphore.ts";
import { type Party, partyOf } from "../admission/party.ts";

/**
 * Waits for admission of the request's party.
 * @returns undefined if the client has disconnected
 * @throws CodedError RATE_LIMITED
 */
export async function turnOf(
  semaphore: FairSemaphore,
  party: Party,
  response: Response,
): Promise<Release | undefined> {
  // PERF: most requests do not wait, so there is nothing to cancel.
  const release = semaphore.tryAcquire(party);
  if (release) return release;
  const gone = new AbortController();
  const onClose = () => gone.abort(new Error("The caller has gone."));
  response.once("close", onClose);
  try {
    return await semaphore.acquire(party, { signal: gone.signal });
  } catch (error) {
    if (gone.signal.aborted) return undefined;
    throw error;
  } finally {
    response.off("close", onClose);
  }
}

/** Waits for admission among requests for pages, by network; see turnOf. */
export const pageTurn = (ip: string | undefined, response: Response): Promise<Release | undefined> =>
  turnOf(pageRequests, partyOf(null, ip), response);

/** Serves a page after admission: a client that requests many at once only delays itself. */
export function inTurn<P>(page: RequestHandler<P>): RequestHandler<P> {
  return async (request, response, next) => {
    const release = await pageTurn(request.ip, response);
    if (!release) return;
    try {
      await page(request, response, next);
    } finally {
      release();
    }
  };
}
