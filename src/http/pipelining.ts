/**
 * Limits what arrives on a connection before it is answered. Node parses all requests that have arrived, whether or not
 * earlier ones have a response, and each takes as long as any.
 */
import type { IncomingMessage, RequestListener, ServerResponse } from "node:http";
import type { Socket } from "node:net";
import { MOST_PIPELINED } from "../admission/semaphores.ts";
import { CodedError, withoutTrace } from "../base/errors.ts";
import { limitParts } from "./bodyParts.ts";
import { endTurn } from "./requestTurns.ts";
import { writeRefusal } from "./rawRefusal.ts";

/**
 * Requests of a connection whose response is not complete. PERF: a property, since a WeakMap occupies the garbage
 * collector.
 */
const PENDING = Symbol("pending requests");
type Connection = Socket & { [PENDING]?: number };

const tooMany = () =>
  new CodedError(
    "RATE_LIMITED",
    `A connection can have ${MOST_PIPELINED} requests without a response; wait for responses, or open another one.`,
    { retryAfterSeconds: 1 },
  );

/** PERF: one listener for all responses, and one for both limits. */
function onClose(this: ServerResponse): void {
  endTurn(this);
  const socket = this.req.socket as Connection;
  socket[PENDING]! -= 1;
}

function refuse(socket: Socket): void {
  writeRefusal(socket, "429 Too Many Requests", withoutTrace(tooMany));
  // Not after a moment: meanwhile, further requests would be parsed.
  socket.destroy();
}

/** Refuses connections with too many requests without a response, and bodies in too many parts. */
export function limitPipelined(app: RequestListener): RequestListener {
  return (request: IncomingMessage, response) => {
    const socket: Connection = request.socket;
    if (socket.destroyed || socket.writableEnded) return;
    const pending = socket[PENDING] ?? 0;
    if (pending >= MOST_PIPELINED) return refuse(socket);
    socket[PENDING] = pending + 1;
    response.on("close", onClose);
    limitParts(request);
    app(request, response);
  };
}
