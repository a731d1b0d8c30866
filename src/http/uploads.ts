/** Uploads over HTTP: who may send a multipart request, and what becomes of its files. */
import type { Readable } from "node:stream";
import type { Request, RequestHandler } from "express";
import { CodedError, signInFirst } from "../base/errors.ts";
import type { Upload } from "../files/uploadAdmission.ts";
import type { Files } from "../files/files.ts";
import { RefusedFile } from "../files/uploadedFile.ts";
import { partyOf } from "../admission/party.ts";
import type { GraphQLRequest } from "./graphqlRequest.ts";
import { multipartLimits, readMultipart, requestTooLarge, type TakeFile } from "./multipart.ts";
import { requestState } from "./requestState.ts";
import { noTrustedDocuments, type TrustedDocuments } from "./trustedDocuments.ts";
import type { UploadPlace } from "./uploadPlaces.ts";

export interface UploadDeps {
  files: Pick<Files, "admit" | "take" | "release">;
  /** What the operation wants at which path, such as `variables.input.file`. */
  places(operations: GraphQLRequest): Promise<ReadonlyMap<string, UploadPlace>>;
  /** Settings of a transaction that acts for the viewer of a request. */
  settings(request: Request): Upload["settings"];
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
  if (!requestState(request).claims?.userId) throw signInFirst();
  if (Number(request.headers["content-length"] ?? 0) > multipartLimits.request) throw requestTooLarge();
  if ((request.headers["content-encoding"] ?? "identity") !== "identity")
    throw new CodedError(
      "BAD_USER_INPUT",
      "Send a multipart request without Content-Encoding.",
      {},
      { status: 415 },
    );
}

/** Whether an error is about the whole request; others go to the field that the file is for, beside the rest of the answer. */
const refusesRequest = (error: unknown): boolean =>
  error instanceof CodedError && error.code === "PAYLOAD_TOO_LARGE";

/**
 * Reads what a refused client is still sending, so that it gets the answer, but not without end. Of a stranger, no more is
 * read: see refuse.ts.
 */
function drain(request: Request): void {
  const state = requestState(request);
  if (!state.claims?.userId) return;
  state.isDrained = true;
  let received = 0;
  request.on("data", (chunk: Buffer) => {
    received += chunk.length;
    if (received > multipartLimits.request) request.destroy();
  });
  request.on("error", () => {});
  request.resume();
}

const partyOfRequest = (request: Request) =>
  partyOf(requestState(request).claims?.userId ?? null, request.ip);

/** Decides on the file, and only then stores it; of one that is refused, nothing is stored. */
async function takeFile(
  { files, places, settings }: UploadDeps,
  documents: TrustedDocuments,
  request: Request,
  file: Readable,
  { path, name, operations, atLeast }: Parameters<TakeFile>[1],
): Promise<unknown> {
  try {
    const place = (await places(await documents.resolve(operations, partyOfRequest(request)))).get(path);
    if (!place) throw new CodedError("BAD_USER_INPUT", `The operation takes no file at ${path}.`);
    const { claims, sentFiles: sent } = requestState(request);
    const atMost = Number(request.headers["content-length"] ?? Infinity);
    const admission = await files.admit({
      ...place,
      userId: claims!.userId!,
      settings: settings(request),
      atLeast,
      atMost,
      sent,
    });
    try {
      return await files.take(file, place.kind, name, admission);
    } finally {
      admission.done();
    }
  } catch (error) {
    if (refusesRequest(error) || (file.destroyed && !file.readableEnded)) throw error;
    // The parser goes on to the next part when this one is read; it is dropped.
    file.resume();
    return new RefusedFile(error as Error);
  }
}

/** Replaces a multipart body by the checked request, whose variables hold the files. Other requests pass. */
export function uploads(deps: UploadDeps, documents: TrustedDocuments = noTrustedDocuments): RequestHandler {
  return async (request, response, next) => {
    const state = requestState(request);
    // Whether as a part or as a data URI: what no row refers to when the request is answered is deleted.
    response.once("close", () => {
      const release = () =>
        deps.files
          .release(state.sentFiles)
          .catch((error) =>
            state.log.warn(
              { event: "files.release_failed", err: error },
              "Deleting files of a refused upload failed; the sweep deletes them.",
            ),
          );
      // What is not released is swept.
      if (state.running) state.running.then(release, release).catch(() => {});
      else release().catch(() => {});
    });
    if (!isMultipart(request)) return next();
    try {
      check(request);
      const asked = await readMultipart(request, (file, of) => takeFile(deps, documents, request, file, of));
      const body = await documents.resolve(asked, partyOfRequest(request));
      state.operationName = body.operationName?.slice(0, 128);
      // The part `operations` can have so many.
      state.bodyBytes = multipartLimits.field;
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
