import { randomUUID } from "node:crypto";
import type { RequestHandler } from "express";
import { type Logger, requestLogger } from "../base/log.ts";
import { inServerSpan } from "../tracing/spans.ts";
import { type WorkContext, workContext } from "../base/workContext.ts";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import { beginRequest } from "./requestState.ts";
import { isOfWebSocket } from "./webSocketRequests.ts";

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Name of spans: the first part of the path, since the rest may be a token. */
const routeOf = (path: string) => /^\/[a-z-]{0,30}(?=\/|$)/.exec(path)?.[0] ?? "other";

/**
 * Takes the client's `X-Request-Id` or creates one, and returns it in the response. A malformed value is replaced
 * instead of refused, since it would reach logs and tables.
 */
export function requestId(log: Logger, constraintMessages: ConstraintMessages): RequestHandler {
  return (request, response, next) => {
    const given = request.get("x-request-id");
    const id = given !== undefined && acceptable.test(given) ? given : randomUUID();
    response.setHeader("X-Request-Id", id);
    const context: WorkContext = { requestId: id };
    beginRequest(request, {
      id,
      context,
      log: requestLogger(log, id),
      startedAt: process.hrtime.bigint(),
      constraintMessages,
      schemaIsOpen: false,
      claims: undefined,
      tokenCheck: undefined,
      tokenFacts: undefined,
      operationName: undefined,
      isRegistered: false,
      operationType: undefined,
      bodyBytes: 0,
      work: undefined,
      errorCodes: new Set(),
      sentFiles: [],
      isDrained: false,
      language: undefined,
      takesEvents: "no",
      isOfWebSocket: isOfWebSocket(request),
      subscription: undefined,
      subscriptionError: undefined,
      running: undefined,
    });
    workContext.run(context, () =>
      inServerSpan(request, response, { "http.route": routeOf(request.path) }, next),
    );
  };
}
