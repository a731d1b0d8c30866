/**
 * Limits the parts in which a body arrives. Each chunk of the transfer encoding, and each TLS record, is a Buffer and an
 * event: ten megabytes in chunks of one byte would take ten seconds, and more than a gigabyte.
 */
import type { IncomingMessage } from "node:http";
import { CodedError } from "../base/errors.ts";
import { writeRefusal } from "./rawRefusal.ts";

/** Parts that any body may have, and the average length in bytes of further ones. */
const FREE_PARTS = 1_000;
const LEAST_AVERAGE = 64;

const tooManyParts = () =>
  new CodedError(
    "BAD_USER_INPUT",
    `The body arrived in too many small parts; send parts of at least ${LEAST_AVERAGE} bytes on average.`,
  );

/** Refuses a request whose body arrives in too many parts, and reads nothing further of its connection. */
export function limitParts(request: IncomingMessage): void {
  const { headers, socket } = request;
  if (headers["transfer-encoding"] === undefined && !(Number(headers["content-length"]) > FREE_PARTS)) return;
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
    if (parts <= FREE_PARTS + bytes / LEAST_AVERAGE) return push(part);
    isRefused = true;
    writeRefusal(socket, "400 Bad Request", tooManyParts());
    socket.pause();
    return false;
  };
}
