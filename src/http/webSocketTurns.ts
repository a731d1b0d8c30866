/**
 * When messages of WebSockets are handled. Data that arrived on a hundred connections would otherwise be handled in one
 * iteration of the event loop, and delay everything else.
 */
import { eventLoop } from "../admission/eventLoop.ts";
import { partyOf } from "../admission/party.ts";
import { LARGE_MESSAGE, webSocketMessages } from "../admission/semaphores.ts";

/**
 * Handles a message: of short ones, one per iteration of the event loop; longer ones within the share of the event
 * loop for long pieces of work. Networks take turns in both.
 * @param address of the client
 * @param length of the message, in characters
 */
export async function handleInTurn(
  address: string | undefined,
  length: number,
  handle: () => void,
): Promise<void> {
  const party = partyOf(null, address);
  if (length >= LARGE_MESSAGE) return eventLoop.run(party, handle);
  const release = await webSocketMessages.acquire(party);
  setImmediate(release);
  handle();
}
