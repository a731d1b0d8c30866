/** Content negotiation of GraphQL responses, from the `Accept` header. */
import { parse, type ContentType } from "content-type";
import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";
import { isUtf8 } from "./mediaType.ts";
import { requestState } from "./requestState.ts";

const GRAPHQL = "application/graphql-response+json";
const JSON_TYPE = "application/json";

/** Specificity of a media range for a type: 3 exact, 2 same family, 1 `*`, 0 no match. */
function fit(range: string, type: string): number {
  if (range === type) return 3;
  if (range === "application/*") return 2;
  return range === "*/*" ? 1 : 0;
}

function* mediaRanges(header: string): Generator<ContentType> {
  for (let start = 0; start < header.length;) {
    const range = parse(header, { comma: true, start });
    yield range;
    start = range.index + 1;
  }
}

/**
 * The response's media type for an `Accept` header; undefined if the client accepts neither. Without a header, or if
 * only a wildcard matches, it is `application/json`: such clients expect HTTP 200. Unparsable ranges are ignored. The
 * package `accepts` treats `application/json; charset=utf-8`, which GraphQL clients send, as different from
 * `application/json`.
 */
export function negotiate(header: string | undefined): string | undefined {
  if (header === undefined || header.trim() === "") return JSON_TYPE;
  // PERF: what most clients send.
  if (header === JSON_TYPE || header === GRAPHQL) return header;
  const best = new Map<string, { fit: number; q: number }>();
  for (const { type: range, parameters } of mediaRanges(header)) {
    const q = Number(parameters.q ?? "1");
    if (!isUtf8(parameters) || !(q >= 0 && q <= 1)) continue;
    for (const type of [GRAPHQL, JSON_TYPE]) {
      const found = fit(range, type);
      if (found > (best.get(type)?.fit ?? 0)) best.set(type, { fit: found, q });
    }
  }
  const graphql = best.get(GRAPHQL) ?? { fit: 0, q: 0 };
  const json = best.get(JSON_TYPE) ?? { fit: 0, q: 0 };
  if (graphql.q === 0 && json.q === 0) return undefined;
  if (graphql.q !== json.q) return graphql.q > json.q ? GRAPHQL : JSON_TYPE;
  return graphql.fit === 3 ? GRAPHQL : JSON_TYPE;
}

/** The media type of a refusal: the requested one, or `application/json` if neither is accepted. */
export const refusalType = (header: string | undefined): string => negotiate(header) ?? JSON_TYPE;

const EVENTS = /(^|,)\s*text\/event-stream\s*(;|,|$)/i;

/** Accept headers with the types that were negotiated, and their longest. */
const negotiated = new Map<string, string | undefined>();
const MOST_HEADERS = 200;
const LONGEST_HEADER = 200;

/**
 * The same for headers that were negotiated before; undefined for a client that also accepts server-sent events, too.
 */
export function negotiatedType(header: string | undefined): string | undefined {
  if (header === undefined) return JSON_TYPE;
  const known = negotiated.get(header);
  if (known !== undefined || header.length > LONGEST_HEADER) return known;
  const type = EVENTS.test(header) ? undefined : negotiate(header);
  if (negotiated.size >= MOST_HEADERS) negotiated.clear();
  negotiated.set(header, type);
  return type;
}

/** Negotiates the response's media type and writes the result to the header, where the GraphQL server reads it. */
export const acceptJson: RequestHandler = (request, _response, next) => {
  const { accept } = request.headers;
  const chosen = negotiate(accept);
  if (accept !== undefined && EVENTS.test(accept))
    requestState(request).takesEvents = chosen === undefined ? "only" : "also";
  else if (chosen === undefined) {
    const message = `Answers come as ${GRAPHQL} or ${JSON_TYPE}; the Accept header names neither.`;
    return next(new CodedError("BAD_USER_INPUT", message, {}, { status: 406 }));
  }
  request.headers.accept = chosen ?? GRAPHQL;
  next();
};
