import type { IncomingMessage } from "node:http";
import type { IdempotencyFacts } from "../operations/idempotency.ts";
import type { GraphQLRequest } from "./graphqlRequest.ts";

/** Identity of a request for idempotency: its key, and its body without extensions. */
export function idempotencyFacts(request: IncomingMessage & { body?: unknown }): IdempotencyFacts {
  const header = request.headers["idempotency-key"];
  return {
    header: Array.isArray(header) ? header.join(", ") : header,
    body() {
      const { query, variables, operationName } = request.body as GraphQLRequest;
      return JSON.stringify([query, variables ?? {}, operationName ?? null]);
    },
  };
}
