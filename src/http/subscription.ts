/** Answers a subscription with server-sent events: the graphql-sse protocol in distinct connections mode. */
import { once } from "node:events";
import type { Response } from "express";
import type { Positions } from "../database/position.ts";
import { errorBody } from "../base/errors.ts";
import type { OperationWork } from "../admission/operationWork.ts";
import { queryLimits } from "../admission/queryLimits.ts";
import type { Language } from "../messages/catalogue.ts";
import { localizeErrors } from "../messages/localizeErrors.ts";
import type { RequestState, SubscriptionResult } from "./requestState.ts";
import { endTurn } from "./requestTurns.ts";

/** Idle time after which a comment is sent as a keep-alive (ms). */
const HEARTBEAT_MS = 15_000;

const next = (text: string) => `event: next\ndata: ${text}\n\n`;
const COMPLETE = "event: complete\ndata:\n\n";

/** Starts a response of events. */
export function beginEvents(response: Response): void {
  response.writeHead(200, {
    "Content-Type": "text/event-stream; charset=utf-8",
    "Cache-Control": "no-store",
    "X-Accel-Buffering": "no",
  });
}

/** Response of a single-result operation for a client that accepts only events. @param text JSON */
export function answerOnce(response: Response, text: string): void {
  beginEvents(response);
  response.end(next(text) + COMPLETE);
}

/** Writes the results of a subscription until it ends or the client disconnects. */
export async function writeSubscription(
  response: Response,
  results: AsyncIterableIterator<SubscriptionResult>,
  {
    state,
    work,
    positions,
    language,
  }: {
    state: RequestState;
    work: OperationWork;
    positions: Positions | undefined;
    language: Language;
  },
): Promise<void> {
  beginEvents(response);
  endTurn(response);
  response.write(":\n\n");
  const heartbeat = setInterval(() => response.write(":\n\n"), HEARTBEAT_MS);
  const gone = new AbortController();
  response.once("close", () => {
    gone.abort();
    clearInterval(heartbeat);
  });
  const write = async (result: SubscriptionResult) => {
    if (result.errors) localizeErrors(result.errors as never, language);
    const text = JSON.stringify(result);
    if (!response.write(next(text))) await once(response, "drain", { signal: gone.signal }).catch(() => {});
  };
  const refusal = (error: Parameters<typeof errorBody>[0]) => {
    state.errorCodes.add(error.code);
    return { errors: errorBody(error, state.id).errors };
  };
  for await (const result of results) {
    if (gone.signal.aborted) return;
    const { position } = work;
    const isTooLarge = work.bytesRead > queryLimits.bytes;
    await write({
      ...(isTooLarge ? refusal(work.tooLarge()) : result),
      ...(positions && position !== undefined && { extensions: { position: positions.write(position) } }),
    });
    // Each result has the limits of an operation.
    work.bytesRead = 0;
    work.position = undefined;
  }
  if (gone.signal.aborted) return;
  if (state.subscriptionError) await write(refusal(state.subscriptionError));
  // Its reader may take longer for the rest than until the next one.
  clearInterval(heartbeat);
  response.end(COMPLETE);
}
