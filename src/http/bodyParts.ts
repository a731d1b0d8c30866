/** Limits the parts in which the bodies of requests arrive. */
import type { IncomingMessage } from "node:http";
import { CodedError } from "../base/errors.ts";
import { areTooMany, canBeTooMany, LEAST_PART } from "../network/smallParts.ts";
import { writeRefusal } from "./rawRefusal.ts";

const tooManyParts = () =>
  new CodedError(
    "BAD_USER_INPUT",
    `The body arrived in too many small parts; send parts of at least ${LEAST_PART} bytes on average.`,
  );

/** Refuses a request whose body arrives in too many parts, and reads nothing further of its connection. */
export function limitParts(request: IncomingMessage): void {
  const { headers, socket } = request;
  if (headers["transfer-encoding"] === undefined && !canBeTooMany(Number(headers["content-length"]))) return;
  const push = request.push.bind(request);
  let parts = 0;
  let bytes = 0;
  let isRefused = false;
  // Called by Node's parser; to listen to the parts would be to read them.
  request.push = (part: Buffer | null) => {
    if (isRefused) return false;
    if (part === null) return push(null);
    parts += 1;
    bytes += part.length;
    if (!areTooMany(parts, bytes)) return push(part);
    isRefused = true;
    writeRefusal(socket, "400 Bad Request", tooManyParts());
    socket.pause();
    return false;
  };
}
