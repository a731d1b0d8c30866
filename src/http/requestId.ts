import { randomUUID } from "node:crypto";
import type { IncomingMessage, ServerResponse } from "node:http";
import type { RequestHandler } from "express";
import { type Logger, requestLogger } from "../base/log.ts";
import { inServerSpan } from "../tracing/spans.ts";
import { type WorkContext, workContext } from "../base/workContext.ts";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import { beginRequest, findRequestState, type RequestState } from "./requestState.ts";
import { isOfWebSocket } from "./webSocketRequests.ts";

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/** Name of the span of a request: the first part of the path, since the rest may be a token. */
const routeOf = (path: string) => /^\/[a-z-]{0,30}(?=\/|$)/.exec(path)?.[0] ?? "other";

/** State of a request that has just begun. */
class BegunState implements RequestState {
  readonly id: string;
  readonly context: WorkContext;
  readonly startedAt = process.hrtime.bigint();
  readonly constraintMessages: ConstraintMessages;
  readonly isOfWebSocket: boolean;
  readonly errorCodes = new Set<string>();
  readonly sentFiles: string[] = [];
  schemaIsOpen = false;
  claims: RequestState["claims"] = undefined;
  tokenCheck: RequestState["tokenCheck"] = undefined;
  tokenFacts: RequestState["tokenFacts"] = undefined;
  operationName: string | undefined = undefined;
  isRegistered = false;
  operationType: string | undefined = undefined;
  bodyBytes = 0;
  compiled: RequestState["compiled"] = undefined;
  work: RequestState["work"] = undefined;
  isDrained = false;
  held: RequestState["held"] = undefined;
  language: RequestState["language"] = undefined;
  takesEvents: RequestState["takesEvents"] = "no";
  subscription: RequestState["subscription"] = undefined;
  subscriptionError: RequestState["subscriptionError"] = undefined;
  running: RequestState["running"] = undefined;
  failure: RequestState["failure"] = undefined;
  readonly #root: Logger;
  #log: Logger | undefined;

  constructor(id: string, root: Logger, constraintMessages: ConstraintMessages, ofWebSocket: boolean) {
    this.id = id;
    this.context = { requestId: id, operation: undefined, role: undefined };
    this.constraintMessages = constraintMessages;
    this.isOfWebSocket = ofWebSocket;
    this.#root = root;
  }

  /** PERF: most requests only have the line that requestLog.ts writes. */
  get log(): Logger {
    return (this.#log ??= requestLogger(this.#root, this.id));
  }
}

/** Begins a request: see {@link beginner}. */
export type Begin = (request: IncomingMessage, response: ServerResponse) => RequestState;

/**
 * Takes the client's `X-Request-Id` or creates one, and returns it in the response. A malformed value is replaced
 * instead of refused, since it would reach logs and tables.
 * @param ended called when the response is complete or the client has disconnected
 */
export function beginner(
  log: Logger,
  constraintMessages: ConstraintMessages,
  ended: (request: IncomingMessage, response: ServerResponse) => void = () => {},
): Begin {
  // PERF: one listener for all requests.
  function onClose(this: ServerResponse): void {
    ended(this.req, this);
  }
  return (request, response) => {
    const given = request.headers["x-request-id"];
    const id = typeof given === "string" && acceptable.test(given) ? given : randomUUID();
    response.setHeader("X-Request-Id", id);
    const state = new BegunState(id, log, constraintMessages, isOfWebSocket(request));
    beginRequest(request, state);
    response.on("close", onClose);
    return state;
  };
}

/** Begins requests that have not begun on the short path; of those, it refuses what could not be answered there. */
export function requestId(begin: Begin): RequestHandler {
  return (request, response, next) => {
    const { context, failure } = findRequestState(request) ?? begin(request, response);
    if (failure) return next(failure.error);
    workContext.run(context, () =>
      inServerSpan(request, response, { "http.route": routeOf(request.path) }, next),
    );
  };
}
