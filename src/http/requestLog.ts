/** The access log: one line per request, without tokens. */
import type { IncomingMessage, ServerResponse } from "node:http";
import type { Logger } from "../base/log.ts";
import { requestState } from "./requestState.ts";

/** Paths whose remainder is a token. */
const secretPaths = /^\/(calendars|confirm|sign|stop-email-change|unsubscribe)\/.*/;

/** The path of a request as the client sent it, without the query string. */
export function pathOf(request: IncomingMessage & { originalUrl?: string }): string {
  const url = request.originalUrl ?? request.url!;
  const end = url.indexOf("?");
  return end < 0 ? url : url.slice(0, end);
}

/**
 * One line per request, written when the response is complete or the client has disconnected. It contains path and
 * operation, but no query string, headers, variables or messages, since those may contain tokens and passwords. The
 * paths of calendars and mail links are shortened for the same reason.
 */
export const requestLog =
  (log: Logger) =>
  (request: IncomingMessage, response: ServerResponse): void => {
    const state = requestState(request);
    log.info(
      {
        requestId: state.id,
        event: "http.request",
        method: request.method,
        path: pathOf(request).replace(secretPaths, "/$1/…"),
        status: response.statusCode,
        durationMs: Number(process.hrtime.bigint() - state.startedAt) / 1e6,
        operationName: state.operationName ?? state.context.operation,
        operationType: state.operationType,
        userId: state.claims?.userId ?? undefined,
        errorCodes: state.errorCodes.size > 0 ? [...state.errorCodes] : undefined,
        aborted: response.writableFinished ? undefined : true,
      },
      "request",
    );
  };
