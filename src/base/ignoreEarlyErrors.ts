import type { EventEmitter } from "node:events";

/**
 * Gives a stream a listener before it can fail. Whoever reads it learns of the failure from `pipeline`, which listens only once the reading
 * begins; a failure before that, such as of work that was cancelled meanwhile, would end the process.
 */
export function ignoreEarlyErrors<Stream extends EventEmitter>(stream: Stream): Stream {
  return stream.on("error", () => {});
}
