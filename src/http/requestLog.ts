/** The access log: one line per request, without tokens. */
import type { RequestHandler } from "express";
import { requestState } from "./requestState.ts";

/** Paths whose remainder is a token. */
const secretPaths = /^\/(calendars|confirm|sign|stop-email-change|unsubscribe)\/.*/;

/**
 * One line per request, written when the response is complete or the client has disconnected. It contains path and
 * operation, but no query string, headers, variables or messages, since those may contain tokens and passwords. The
 * paths of calendars and mail links are shortened for the same reason.
 */
export const requestLog: RequestHandler = (request, response, next) => {
  const state = requestState(request);
  response.once("close", () => {
    state.log.info(
      {
        event: "http.request",
        method: request.method,
        path: request.originalUrl.split("?", 1)[0]!.replace(secretPaths, "/$1/…"),
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
  });
  next();
};
