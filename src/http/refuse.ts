/** Refusals of the transport: unknown paths, and errors of middlewares, as coded errors. */
import type { ErrorRequestHandler, RequestHandler } from "express";
import { CodedError, errorBody } from "../base/errors.ts";
import { refusalType } from "./accept.ts";
import type { Language } from "../messages/catalogue.ts";
import { localizeErrors } from "../messages/localizeErrors.ts";
import { viewerLanguage, type LanguageOfUser } from "./viewerLanguage.ts";
import { stopReading } from "./rawRefusal.ts";
import { requestState } from "./requestState.ts";
import { retryAfter } from "./retryAfter.ts";
import { failureForLog, toCodedError, viewerOf } from "./toCodedError.ts";

/** Unknown paths. */
export const notFound: RequestHandler = (_request, _response, next) => {
  next(new CodedError("NOT_FOUND", "There is nothing at this path. Send operations to POST /graphql."));
};

/** Errors of the HTTP layer itself, such as a path that cannot be decoded, have a 4xx status. */
function transportError(error: unknown): CodedError | undefined {
  const status = (error as { status?: unknown } | null)?.status;
  if (error instanceof CodedError || typeof status !== "number" || status < 400 || status > 499)
    return undefined;
  return new CodedError("BAD_USER_INPUT", "The request is malformed.", {}, { status, cause: error });
}

/** Headers set for a content before it was refused. For 416, the length of the content is kept. */
const ofContent = [
  "Accept-Ranges",
  "Content-Disposition",
  "Content-Encoding",
  "Content-Length",
  "Content-Range",
  "Content-Type",
  "ETag",
  "Last-Modified",
];

/** The only place that writes refusals: JSON with a code, in the language of the viewer, for any error. */
export const refuse =
  (languageOfUser?: LanguageOfUser): ErrorRequestHandler =>
  (error, request, response, _next) => {
    const state = requestState(request);
    const coded =
      transportError(error) ?? toCodedError(error, state.constraintMessages, viewerOf(state.claims));
    state.errorCodes.add(coded.code);
    const failure = failureForLog(coded);
    if (failure) state.log.error({ event: "http.failed", ...failure }, "The request failed.");
    if (response.headersSent) return void response.destroy();
    if (coded.status === 401 && !response.hasHeader("WWW-Authenticate")) {
      const failed = request.headers.authorization === undefined ? "" : ', error="invalid_token"';
      response.setHeader("WWW-Authenticate", `Bearer realm="plat"${failed}`);
    }
    retryAfter(response, coded);
    for (const name of ofContent)
      if (name !== "Content-Range" || coded.status !== 416) response.removeHeader(name);
    response.setHeader("Cache-Control", "no-store");
    if (!request.complete && !state.isDrained) response.once("finish", () => stopReading(request));
    const body = errorBody(coded, state.id);
    const answer = (language: Language) => {
      localizeErrors(body.errors, language);
      response
        .status(coded.status)
        .type(`${refusalType(request.headers.accept)}; charset=utf-8`)
        .send(JSON.stringify(body));
    };
    // Immediately if possible: pipelined requests would otherwise be answered first.
    const language = viewerLanguage(request, languageOfUser);
    if (typeof language === "string") answer(language);
    else return language.then(answer);
  };
