import type { ServerResponse } from "node:http";
import type { RequestHandler } from "express";

/**
 * Headers of clients and tracing. The asterisk covers all others, except Authorization, and older browsers do not
 * support it.
 */
const requestHeaders = [
  "Authorization",
  "Content-Type",
  "Idempotency-Key",
  "If-None-Match",
  "Last-Event-ID",
  "Plat-Position",
  "X-Request-Id",
  "X-Requested-With",
  "GraphQL-Preflight",
  "Apollo-Require-Preflight",
  "X-Apollo-Operation-Name",
  "Apollographql-Client-Name",
  "Apollographql-Client-Version",
  "GraphQL-Client-Name",
  "GraphQL-Client-Version",
  "Traceparent",
  "Tracestate",
  "Baggage",
  "Sentry-Trace",
  "*",
].join(", ");
const responseHeaders =
  "X-Request-Id, Plat-Position, ETag, Retry-After, WWW-Authenticate, Idempotency-Replayed";

/** Lets pages of any origin read a response. */
export function allowOrigins(response: ServerResponse): void {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Expose-Headers", responseHeaders);
}

/**
 * Lets pages of any origin call an endpoint with these methods. This is safe because no credentials are sent by the
 * browser itself: there are no cookies, the token is in a header set by the page's own code, and credentials mode is
 * refused. A preflight is not a GraphQL request, so it is answered with 204; any other OPTIONS request falls through
 * to 405.
 */
export const cors =
  (methods: "GET" | "POST" | "GET, POST"): RequestHandler =>
  (request, response, next) => {
    allowOrigins(response);
    const preflight =
      request.method === "OPTIONS" &&
      request.headers.origin !== undefined &&
      request.headers["access-control-request-method"] !== undefined;
    if (!preflight) return next();
    response.setHeader("Access-Control-Allow-Methods", methods);
    response.setHeader("Access-Control-Allow-Headers", requestHeaders);
    response.setHeader("Access-Control-Max-Age", "86400");
    response.status(204).end();
  };
