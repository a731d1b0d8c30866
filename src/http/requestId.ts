import { randomUUID } from "node:crypto";
import type { RequestHandler } from "express";
import type { Logger } from "pino";
import type { ConstraintMessages } from "../database/constraintMessages.ts";
import { beginRequest } from "./requestState.ts";

const acceptable = /^[A-Za-z0-9._-]{1,128}$/;

/**
 * Takes the caller's `X-Request-Id` or makes one, and answers with it. A value of another form is replaced rather than
 * refused: it would otherwise reach logs and tables.
 */
export function requestId(log: Logger, constraintMessages: ConstraintMessages): RequestHandler {
  return (request, response, next) => {
    const given = request.get("x-request-id");
    const id = given !== undefined && acceptable.test(given) ? given : randomUUID();
    response.setHeader("X-Request-Id", id);
    beginRequest(request, {
      id,
      log: log.child({ requestId: id }),
      startedAt: process.hrtime.bigint(),
      constraintMessages,
      schemaIsOpen: false,
      claims: undefined,
      tokenCheck: undefined,
      operationName: undefined,
      isRegistered: false,
      operationType: undefined,
      work: undefined,
      errorCodes: new Set(),
      sentFiles: [],
      isDrained: false,
      language: undefined,
      running: undefined,
    });
    next();
  };
}
