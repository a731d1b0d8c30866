/** Uploads over HTTP: who may send a multipart request, and how its files are processed. */
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
  /** Files that the operation expects, by path such as `variables.input.file`. */
  places(operations: GraphQLRequest): Promise<ReadonlyMap<string, UploadPlace>>;
  /** Settings of a transaction for the viewer of the request. */
  settings(request: Request): Upload["settings"];
}

/** A form of another site cannot send these headers; a script of one only after a preflight (see cors.ts). */
const unforgeable = ["graphql-preflight", "apollo-require-preflight", "x-requested-with"];

/** Whether the body is multipart/form-data, by its Content-Type. */
export const isMultipart = (request: Request): boolean =>
  /^\s*multipart\/form-data\s*(;|$)/i.test(request.headers["content-type"] ?? "");

function check(request: Request): void {
  if (!unforgeable.some((name) => request.headers[name]))
    throw new CodedError(
      "FORBIDDEN",
      "A multipart request requires the header GraphQL-Preflight: 1, which a form on another site cannot send.",
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

/**
 * Whether an error concerns the entire request; others are reported for the field of the file, beside the rest of the
 * response.
 */
const refusesRequest = (error: unknown): boolean =>
  error instanceof CodedError && error.code === "PAYLOAD_TOO_LARGE";

/**
 * Reads what a refused client is still sending, up to a limit, so that it gets the response. For visitors, no more is
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

/** Validates the file before storing it; a refused one is not stored. */
async function takeFile(
  { files, places, settings }: UploadDeps,
  documents: TrustedDocuments,
  request: Request,
  file: Readable,
  { path, name, operations, atLeast }: Parameters<TakeFile>[1],
): Promise<unknown> {
  try {
    const place = (await places(await documents.resolve(operations, partyOfRequest(request)))).get(path);
    if (!place) throw new CodedError("BAD_USER_INPUT", `The operation does not accept a file at ${path}.`);
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
    // The parser continues with the next part once this one has been read; it is dropped.
    file.resume();
    return new RefusedFile(error as Error);
  }
}

/** Replaces a multipart body by the validated request, whose variables contain the files. Other requests pass. */
export function uploads(deps: UploadDeps, documents: TrustedDocuments = noTrustedDocuments): RequestHandler {
  return async (request, response, next) => {
    const state = requestState(request);
    // For parts as well as data URIs: files that no row refers to when the request is answered are deleted.
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
      // Files that are not released are removed by the sweep.
      if (state.running) state.running.then(release, release).catch(() => {});
      else release().catch(() => {});
    });
    if (!isMultipart(request)) return next();
    try {
      check(request);
      const parsed = await readMultipart(request, (file, of) => takeFile(deps, documents, request, file, of));
      const body = await documents.resolve(parsed, partyOfRequest(request));
      state.operationName = body.operationName?.slice(0, 128);
      // Limit of the part `operations`.
      state.bodyBytes = multipartLimits.field;
      request.body = body;
      // The spelling that the GraphQL server recognizes.
      request.headers["content-type"] = "application/json";
    } catch (error) {
      drain(request);
      throw error;
    }
    next();
  };
}
