/**
 * Ends connections whose client neither sends what it has announced nor reads what it has asked for. A slow line is no fault:
 * bytes only have to move faster than by a modem.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { CodedError } from "../base/errors.ts";
import { writeRefusal } from "./rawRefusal.ts";

export interface Pace {
  /** Bytes a second that a body has to arrive with on average, and each part of an answer to be taken with. */
  readonly rate: number;
  /** Milliseconds in which nothing at all may move. */
  readonly grace: number;
}

export const defaultPace: Pace = { rate: 4_096, grace: 20_000 };

/** How often it is looked; a time-out is late by this at most (ms). */
const LOOK_EVERY = 1_000;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Milliseconds in which the service had taken all that had come, and waited for more of the body. */
  reading: number;
  /** Bytes of the connection when the request began. */
  readonly before: number;
  /** How much of the answers on its connection was taken, as far as it is known, and since when that is so. */
  taken: { bytes: number; since: number };
}

const tooSlow = () =>
  new CodedError("BAD_USER_INPUT", "The request did not arrive in time; send it again.", {}, { status: 408 });

/** Wraps an application; `stop` ends the looking. */
export function keepPace(
  app: RequestListener,
  { rate, grace }: Pace = defaultPace,
): { app: RequestListener; stop(): void } {
  const exchanges = new Set<Exchange>();
  const every = Math.min(LOOK_EVERY, grace / 4);

  function look(exchange: Exchange, now: number): void {
    const { request, response } = exchange;
    const { socket } = request;
    if (!request.complete && request.readableLength === 0) {
      exchange.reading += every;
      const received = socket.bytesRead - exchange.before;
      if (exchange.reading > grace + (received / rate) * 1_000) {
        if (response.headersSent) socket.destroy();
        else writeRefusal(socket, "408 Request Timeout", tooSlow());
        return;
      }
    }
    const waiting = response.writableLength;
    const bytes = socket.bytesWritten - socket.writableLength;
    // What one write hands over is known to be taken when all of it is: it has the time that it takes.
    if (waiting === 0 || bytes !== exchange.taken.bytes) exchange.taken = { bytes, since: now };
    else if (now - exchange.taken.since > grace + (waiting / rate) * 1_000) socket.destroy();
  }

  const timer = setInterval(() => {
    const now = performance.now();
    for (const exchange of exchanges)
      if (exchange.response.closed) exchanges.delete(exchange);
      else look(exchange, now);
  }, every).unref();

  return {
    app: (request, response) => {
      const { bytesRead: before } = request.socket;
      const taken = { bytes: 0, since: performance.now() };
      const exchange: Exchange = { request, response, reading: 0, before, taken };
      exchanges.add(exchange);
      app(request, response);
    },
    stop: () => clearInterval(timer),
  };
}
