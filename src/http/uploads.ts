/** Uploads over HTTP: who may send a multipart request, and what becomes of its files. */
import type { Request, RequestHandler } from "express";
import { CodedError } from "../errors.ts";
import type { Files } from "../files/files.ts";
import type { FileKindName } from "../files/kinds.ts";
import { RefusedFile } from "../files/uploadedFile.ts";
import type { GraphQLRequest } from "./graphqlRequest.ts";
import { multipartLimits, readMultipart, requestTooLarge } from "./multipart.ts";
import { requestState } from "./requestState.ts";

export interface UploadDeps {
  take: Files["take"];
  /** Which kind of file the operation wants at which path, such as `variables.input.file`. */
  kinds(operations: GraphQLRequest): Promise<ReadonlyMap<string, FileKindName>>;
}

/** A form of another site cannot send these; a script of one can only after asking (see cors.ts). */
const unforgeable = ["graphql-preflight", "apollo-require-preflight", "x-requested-with"];

export const isMultipart = (request: Request): boolean =>
  /^\s*multipart\/form-data\s*(;|$)/i.test(request.headers["content-type"] ?? "");

function check(request: Request): void {
  if (!unforgeable.some((name) => request.headers[name]))
    throw new CodedError(
      "FORBIDDEN",
      "A multipart request needs the header GraphQL-Preflight: 1, which a form of another site cannot send.",
    );
  if (!requestState(request).claims?.userId)
    throw new CodedError(
      "UNAUTHENTICATED",
      'Sign in first: send the header "Authorization: Bearer <token>".',
    );
  if (Number(request.headers["content-length"] ?? 0) > multipartLimits.request) throw requestTooLarge();
  if ((request.headers["content-encoding"] ?? "identity") !== "identity")
    throw new CodedError(
      "BAD_USER_INPUT",
      "Send a multipart request without Content-Encoding.",
      {},
      { status: 415 },
    );
}

/** Errors of the file itself go to its field, beside the rest of the answer; others refuse the request. */
const belongsToField = (error: unknown): error is CodedError =>
  error instanceof CodedError && error.code !== "PAYLOAD_TOO_LARGE";

/** Reads what a refused client is still sending, so that it gets the answer, but not without end. */
function drain(request: Request): void {
  let received = 0;
  request.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (received > multipartLimits.request) request.destroy();
  });
  request.on("error", () => {});
  request.resume();
}

/** Replaces a multipart body by the checked request, whose variables hold the files. Other requests pass. */
export function uploads({ take, kinds }: UploadDeps): RequestHandler {
  return async (request, _response, next) => {
    if (!isMultipart(request)) return next();
    try {
      check(request);
      const body = await readMultipart(request, async (file, { path, name, operations }) => {
        const kind = (await kinds(operations)).get(path);
        try {
          if (kind !== undefined) return await take(file, kind, name);
          file.resume();
          return new RefusedFile(new CodedError("BAD_USER_INPUT", `The operation takes no file at ${path}.`));
        } catch (error) {
          if (belongsToField(error)) return new RefusedFile(error);
          throw error;
        }
      });
      requestState(request).operationName = body.operationName?.slice(0, 128);
      request.body = body;
      // The one spelling that the GraphQL server knows.
      request.headers["content-type"] = "application/json";
    } catch (error) {
      drain(request);
      throw error;
    }
    next();
  };
}

/** Runs these for requests whose body was not read yet. */
export const unlessRead = (...handlers: RequestHandler[]): RequestHandler[] => {
  const read = new WeakSet<Request>();
  return [
    (request, _response, next) => {
      if (request.body !== undefined) read.add(request);
      next();
    },
    ...handlers.map(
      (handler): RequestHandler =>
        (request, response, next) =>
          read.has(request) ? next() : handler(request, response, next),
    ),
  ];
};
