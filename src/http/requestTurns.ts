/**
 * When requests begin. A client can have hundreds of connections and send a request on each in the same moment; handled
 * in one iteration of the event loop, they would delay everybody else by as long as all of them take together.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Release } from "../admission/fairSemaphore.ts";
import type { Party } from "../admission/party.ts";
import { REQUEST_HOLD_MS, requests, requestStarts } from "../admission/semaphores.ts";
import type { CodedError } from "../base/errors.ts";
import { networkOf } from "../network/networkOf.ts";
import { forwardedFor } from "./forwardedFor.ts";
import { writeRefusal } from "./rawRefusal.ts";

/** The request of a response in {@link requests}. */
const TURN = Symbol("turn of the request");
type Response = ServerResponse & { [TURN]?: { readonly release: Release; readonly since: number } };

const partyOf = (network: string): Party => ({ group: network, key: network });

/** Responses that count in {@link requests}, oldest first. */
const held = new Set<Response>();
let sweeping: NodeJS.Timeout | undefined;

/** Ends the turns of requests that take long. */
function sweep(): void {
  const before = performance.now() - REQUEST_HOLD_MS;
  for (const response of held) {
    if (response[TURN]!.since > before) return;
    endTurn(response);
  }
  clearInterval(sweeping);
  sweeping = undefined;
}

function hold(response: Response, release: Release): void {
  response[TURN] = { release, since: performance.now() };
  held.add(response);
  sweeping ??= setInterval(sweep, REQUEST_HOLD_MS / 4).unref();
}

/**
 * A response is complete, or begins and can last long, such as an event stream: its request no longer counts.
 */
export function endTurn(response: Response): void {
  if (held.delete(response)) response[TURN]!.release();
}

const starts: Release[] = [];
/** Releases all starts of this iteration of the event loop in the next. */
function releaseNext(release: Release): void {
  if (starts.push(release) > 1) return;
  setImmediate(() => {
    for (const one of starts.splice(0)) one();
  });
}

/**
 * Begins a limited number of requests per iteration of the event loop, and handles a limited number of a network;
 * networks take turns. `endTurn` is called at the end of each response. A connection of a network with too many that wait is refused and closed.
 * @param isProxy whether an address is a proxy, whose clients take turns
 */
export function inTurns(app: RequestListener, isProxy: (address: string) => boolean): RequestListener {
  const wait = async (
    request: IncomingMessage,
    response: ServerResponse,
    party: Party,
    release: Release | undefined,
  ) => {
    hold(response, release ?? (await requests.acquire(party)));
    releaseNext(await requestStarts.acquire(party));
    // The client may have gone before it was held.
    if (response.destroyed) endTurn(response);
    else app(request, response);
  };
  return (request, response) => {
    const party = partyOf(networkOf(forwardedFor(request, isProxy)));
    // PERF: usually nobody waits.
    const release = requests.tryAcquire(party);
    const start = release && requestStarts.tryAcquire(party);
    if (!start)
      return void wait(request, response, party, release).catch((error: CodedError) =>
        writeRefusal(request.socket, "429 Too Many Requests", error),
      );
    hold(response, release);
    releaseNext(start);
    app(request, response);
  };
}
