import type { RequestHandler } from "express";

/**
 * What clients and their tracing set. The asterisk stands for all others; it does not include Authorization, and older browsers do not
 * know it.
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

/**
 * Lets pages of any origin call an endpoint that takes these methods. That is safe because nothing here is authenticated by something a browser
 * adds by itself: there are no cookies, the token is in a header that the page's own code has to set, and credentials
 * mode stays refused. A preflight is no GraphQL request, so it is answered 204; any other OPTIONS goes on and meets 405.
 */
export const cors =
  (methods: "GET" | "POST" | "GET, POST"): RequestHandler =>
  (request, response, next) => {
    response.setHeader("Access-Control-Allow-Origin", "*");
    response.setHeader("Access-Control-Expose-Headers", responseHeaders);
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
