/**
 * Closes connections whose client neither sends the announced body nor reads the response. Slow clients are accepted if
 * they exceed a minimum rate, about that of a modem.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import { CodedError } from "../base/errors.ts";
import { writeRefusal } from "./rawRefusal.ts";

export interface Pace {
  /** Minimum average bytes per second for bodies, and for each chunk of a response. */
  readonly rate: number;
  /** Maximum milliseconds without any progress. */
  readonly grace: number;
}

export const defaultPace: Pace = { rate: 4_096, grace: 20_000 };

/** Check interval; a timeout fires late by at most this time (ms). */
const LOOK_EVERY = 1_000;

interface Exchange {
  readonly request: IncomingMessage;
  readonly response: ServerResponse;
  /** Milliseconds during which the service had processed everything received and waited for more of the body. */
  reading: number;
  /** Byte count of the connection when the request began. */
  readonly before: number;
  /** Known progress of the responses on the connection, and since when. */
  taken: { bytes: number; since: number };
}

const tooSlow = () =>
  new CodedError("BAD_USER_INPUT", "The request did not arrive in time; send it again.", {}, { status: 408 });

/** Wraps an application; `stop` ends the checks. */
export function keepPace(
  app: RequestListener,
  { rate, grace }: Pace = defaultPace,
): { app: RequestListener; stop(): void } {
  const exchanges = new Map<ServerResponse, Exchange>();
  const every = Math.min(LOOK_EVERY, grace / 4);

  function check(exchange: Exchange, now: number): void {
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
    // A write is only known to be received when all of it is, so it has the time that its size takes.
    if (waiting === 0 || bytes !== exchange.taken.bytes) exchange.taken = { bytes, since: now };
    else if (now - exchange.taken.since > grace + (waiting / rate) * 1_000) socket.destroy();
  }

  // Only while there are requests.
  let timer: NodeJS.Timeout | undefined;
  const stop = () => {
    clearInterval(timer);
    timer = undefined;
  };
  const checkAll = () => {
    const now = performance.now();
    for (const exchange of exchanges.values()) check(exchange, now);
    if (exchanges.size === 0) stop();
  };
  // PERF: one listener for all. What has ended must not be kept until the next check, or it becomes old.
  function onClose(this: ServerResponse): void {
    exchanges.delete(this);
  }

  return {
    app: (request, response) => {
      const { bytesRead: before } = request.socket;
      const taken = { bytes: 0, since: performance.now() };
      const exchange: Exchange = { request, response, reading: 0, before, taken };
      exchanges.set(response, exchange);
      response.on("close", onClose);
      timer ??= setInterval(checkAll, every).unref();
      app(request, response);
    },
    stop,
  };
}
