import type { RequestHandler } from "express";
import { CodedError } from "../base/errors.ts";

/** Refuses all other methods with 405 and an `Allow` header. */
export function onlyMethods(...methods: string[]): RequestHandler {
  const allow = methods.join(", ");
  return (request, response, next) => {
    if (methods.includes(request.method)) return next();
    response.setHeader("Allow", allow);
    next(new CodedError("BAD_USER_INPUT", `This path only accepts ${allow}.`, {}, { status: 405 }));
  };
}
