import type { EventEmitter } from "node:events";

/**
 * Adds an error listener to a stream. The reader gets errors from `pipeline`, which only listens once reading has
 * begun; an earlier error, such as from cancelled work, would crash the process.
 */
export function ignoreEarlyErrors<Stream extends EventEmitter>(stream: Stream): Stream {
  return stream.on("error", () => {});
}
