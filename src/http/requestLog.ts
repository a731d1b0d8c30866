import type { RequestHandler } from "express";
import { requestState } from "./requestState.ts";

/**
 * One line per request, written when the answer is out or the caller has gone. It names path and operation but neither
 * the query string nor headers, variables or messages: those may carry tokens and passwords. So does the path of a calendar.
 */
export const requestLog: RequestHandler = (request, response, next) => {
  const state = requestState(request);
  response.once("close", () => {
    state.log.info(
      {
        method: request.method,
        path: request.originalUrl.split("?", 1)[0]!.replace(/^\/calendars\/.*/, "/calendars/…"),
        status: response.statusCode,
        durationMs: Number(process.hrtime.bigint() - state.startedAt) / 1e6,
        operationName: state.operationName,
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
