/** The GraphQL multipart request: its parts in order, each file processed while it arrives. */
import busboy from "busboy";
import type { IncomingMessage } from "node:http";
import type { Readable } from "node:stream";
import { CodedError } from "../base/errors.ts";
import { MEGABYTE } from "../providers/files/kinds.ts";
import { parseJson } from "./jsonText.ts";
import { parseGraphQLRequest, type AskedRequest } from "./graphqlRequest.ts";
import type { DatabaseValue } from "../database/databaseValue.ts";

export const multipartLimits = {
  /** Maximum number of files per request. */
  files: 10,
  /** Maximum bytes per request. */
  request: 100 * MEGABYTE,
  /** Maximum bytes of each of the parts `operations` and `map`. */
  field: 1_000_000,
} as const;

/** Maximum bytes between the end of the last file and that of the request. */
const TAIL = 200;

/** Stores a file, or returns a placeholder for a refused one; rejects if the request cannot continue. */
export type TakeFile = (
  file: Readable,
  of: { path: string; name: string | undefined; operations: AskedRequest; atLeast: number },
) => Promise<unknown>;

const refuse = (message: string, field?: string) =>
  new CodedError("BAD_USER_INPUT", message, field === undefined ? {} : { field });

const cutOff = (cause?: unknown) =>
  new CodedError("BAD_USER_INPUT", "The upload was interrupted; send it again.", {}, { cause });

/** The refusal of a request above `multipartLimits`. */
export const requestTooLarge = () =>
  new CodedError(
    "PAYLOAD_TOO_LARGE",
    `The request exceeds ${multipartLimits.request / MEGABYTE} MB or ${multipartLimits.files} files.`,
    { limit: multipartLimits.request },
  );

/** The part `map`: maps file parts to paths in the variables. */
function parseMap(text: string): Map<string, string[]> {
  const { value } = parseJson(Buffer.from(text), "The part map");
  if (typeof value !== "object" || value === null || Array.isArray(value))
    throw refuse("The part map must be a JSON object.", "map");
  const parts = Object.entries(value);
  if (parts.length > multipartLimits.files) throw requestTooLarge();
  return new Map(
    parts.map(([part, paths]) => {
      const fine =
        Array.isArray(paths) &&
        paths.length > 0 &&
        paths.length <= multipartLimits.files &&
        paths.every((path) => typeof path === "string" && /^variables(\.\w+)+$/.test(path));
      if (!fine) throw refuse("Each entry of map must list paths such as variables.file.", "map");
      return [part, paths as string[]];
    }),
  );
}

/** Puts the file where the variables contain null. */
function place(operations: AskedRequest, path: string, file: unknown): void {
  const steps = path.split(".");
  const last = steps.pop()!;
  let at: DatabaseValue = operations;
  for (const step of steps) at = Object.hasOwn(at ?? {}, step) ? at[step] : undefined;
  if (typeof at !== "object" || at === null || !Object.hasOwn(at, last) || at[last] !== null)
    throw refuse(`The variables must be null at ${path}, where the file is inserted.`, "map");
  at[last] = file;
}

/**
 * Reads the entire request; parts come in the order operations, map, files.
 * @throws CodedError; files stored until then are removed by the sweep
 */
export async function readMultipart(request: IncomingMessage, take: TakeFile): Promise<AskedRequest> {
  let operations: AskedRequest | undefined;
  let map: Map<string, string[]> | undefined;
  let received = 0;
  const files = new Map<string, Promise<unknown>>();
  const streams = new Set<Readable>();
  let parser: busboy.Busboy;
  try {
    parser = busboy({
      headers: request.headers,
      defParamCharset: "utf8",
      // One more than allowed, so that exceeding the limit is reported instead of truncated. Other limits are
      // enforced where parts are read.
      limits: { fieldSize: multipartLimits.field + 1 },
    });
  } catch (error) {
    throw new CodedError(
      "BAD_USER_INPUT",
      "The multipart request has no boundary.",
      {},
      { status: 400, cause: error },
    );
  }
  const done = Promise.withResolvers<void>();
  const onField = (name: string, value: string) => {
    if (value.length > multipartLimits.field) throw requestTooLarge();
    if (name === "operations" && !operations) operations = parseGraphQLRequest(Buffer.from(value));
    else if (name === "map" && operations && !map) map = parseMap(value);
    else throw refuse("Send the parts operations and map first, and then the files that map lists.", name);
  };
  const onFile = (name: string, file: Readable, given: string | undefined) => {
    streams.add(file);
    // Raised by the parser when the request is aborted.
    file.on("error", () => {});
    const path = map?.get(name)?.[0];
    if (!operations || path === undefined || files.has(name))
      throw refuse("Send the parts operations and map first, and then the files that map lists.", name);
    if (files.size === multipartLimits.files) throw requestTooLarge();
    // With a single file, the remaining bytes belong to it; with several, that is unknown.
    const announced = Number(request.headers["content-length"] ?? 0);
    const atLeast = map!.size === 1 ? Math.max(0, announced - received - TAIL) : 0;
    const taken = take(file, { path, name: given, operations, atLeast });
    taken.catch(done.reject);
    files.set(name, taken);
  };
  const guarded =
    <A extends unknown[]>(work: (...args: A) => void) =>
    (...args: A) => {
      try {
        work(...args);
      } catch (error) {
        done.reject(error);
      }
    };
  const onBreak = () => done.reject(cutOff());
  const onData = guarded((chunk: Buffer) => {
    received += chunk.length;
    if (received > multipartLimits.request) throw requestTooLarge();
  });
  parser.on("field", guarded(onField));
  parser.on(
    "file",
    guarded((name: string, file: Readable, { filename }: busboy.FileInfo) => onFile(name, file, filename)),
  );
  parser.on("error", (error) => done.reject(cutOff(error)));
  parser.on("close", () => done.resolve());
  request.on("data", onData).on("aborted", onBreak).on("error", onBreak);
  try {
    request.pipe(parser);
    await done.promise;
    const taken = new Map<string, unknown>();
    for (const [name, file] of files) taken.set(name, await file);
    if (!operations || !map) throw refuse("The request requires the parts operations and map.");
    for (const [name, paths] of map) {
      if (!taken.has(name)) throw refuse(`The file ${name} listed in map was not sent.`, name);
      for (const path of paths) place(operations, path, taken.get(name));
    }
    return operations;
  } catch (error) {
    request.unpipe(parser);
    for (const stream of streams) stream.destroy(new Error("The request was refused."));
    await Promise.allSettled(files.values());
    throw error;
  } finally {
    request.off("data", onData).off("aborted", onBreak);
  }
}
