/** Accepts file contents: validates and stores them once, and returns the reference for SQL. */
import { Readable } from "node:stream";
import type { Pool } from "pg";
import { CodedError } from "../base/errors.ts";
import { thumbnailKey, type FileStore } from "../providers/files/index.ts";
import { inTransaction } from "../database/transaction.ts";
import type { FairSemaphore } from "../admission/fairSemaphore.ts";
import { createAdmission, type Admission, type Upload } from "./uploadAdmission.ts";
import { canBegin, contentType, HEAD, invalidUtf8Line } from "./contentType.ts";
import { safeFileName } from "./fileName.ts";
import { processName, withIncoming, type Incoming } from "../providers/files/incoming.ts";
import { fileKinds, isPicture, type FileKindName } from "../providers/files/kinds.ts";
import { readPicture } from "./picture.ts";
import { UploadedFile } from "./uploadedFile.ts";

export interface FilesOptions {
  store: FileStore;
  /** Connections of plat_authenticator. */
  pool: Pool;
  /** Folder for uploads in progress. */
  incomingFolder: string;
  /** Quota in bytes per organization and user. Default: no limit. */
  quota?: number;
  /** Shares of the pool, for checks before an upload; without it, uploads wait in order of arrival. */
  connections?: FairSemaphore;
}

export interface Files {
  /**
   * Decides on an upload before any of it is read; call `done` of the result.
   * @throws the errors with which the mutation would be refused, and those of src/files/uploadAdmission.ts
   */
  admit(upload: Upload): Promise<Admission>;
  /**
   * Stores a content; nothing is stored if its first bytes are not of an accepted type. It is kept if a row refers to
   * it when the request has been answered (see `release`), or within a day.
   * @param admission of an upload; without it, no quota is charged, as in the demo
   * @throws CodedError PAYLOAD_TOO_LARGE, UNSUPPORTED_FILE, BAD_USER_INPUT, LIMIT_EXCEEDED or PROVIDER_ERROR
   */
  take(
    content: Readable,
    kind: FileKindName,
    fileName: string | undefined,
    admission?: Admission,
  ): Promise<UploadedFile>;
  /** Deletes the contents that no row refers to; called when the request that sent them has been answered. */
  release(checksums: readonly string[]): Promise<void>;
  /** The content of a stored file. */
  read(file: UploadedFile): Promise<Readable>;
}

/** Practically unlimited. */
const maxQuota = Number.MAX_SAFE_INTEGER;

const storeFailed = (message: string, cause: unknown): CodedError =>
  new CodedError("PROVIDER_ERROR", message, { provider: "files", retryable: true }, { cause });

/** Reports a failure of the store. @throws CodedError PROVIDER_ERROR */
export function throwReadFailure(error: unknown): never {
  throw storeFailed("The file could not be read; try again in a moment.", error);
}

const notAccepted = (kind: FileKindName) =>
  new CodedError(
    "UNSUPPORTED_FILE",
    `The type of this file is not accepted; use one of these types: ${fileKinds[kind].accepted}.`,
    { field: "file" },
  );

/**
 * The content, once its first bytes may be of an accepted type.
 * @throws CodedError UNSUPPORTED_FILE otherwise; the unread rest is left to the caller
 */
async function accepted(content: Readable, kind: FileKindName): Promise<Readable> {
  const begin: Buffer[] = [];
  let length = 0;
  while (length < HEAD && !content.readableEnded && !content.destroyed) {
    const chunk = content.read() as Buffer | null;
    if (chunk === null) await nextEvent(content);
    else {
      begin.push(chunk);
      length += chunk.length;
    }
  }
  const head = Buffer.concat(begin);
  if (length > 0 && !canBegin(head.subarray(0, HEAD), fileKinds[kind].types)) throw notAccepted(kind);
  return Readable.from(
    (async function* () {
      yield head;
      yield* content;
    })(),
  );
}

/** Until there is more to read, or the end. */
function nextEvent(content: Readable): Promise<void> {
  return new Promise((resolve, reject) => {
    const events = ["readable", "end", "close"] as const;
    const stop = () => {
      for (const name of events) content.off(name, go);
      content.off("error", fail);
    };
    const go = () => {
      stop();
      resolve();
    };
    const fail = (error: Error) => {
      stop();
      reject(error);
    };
    for (const name of events) content.once(name, go);
    content.once("error", fail);
  });
}

async function typeOf({ path, size }: Incoming, kind: FileKindName): Promise<string> {
  const field = "file";
  if (size === 0) throw new CodedError("BAD_USER_INPUT", "The file is empty.", { field });
  const { types } = fileKinds[kind];
  const type = await contentType(path, size);
  if (type !== undefined && (types as readonly string[]).includes(type)) return type;
  const row = kind === "loadRows" && type === undefined ? await invalidUtf8Line(path) : undefined;
  if (row !== undefined)
    throw new CodedError(
      "UNSUPPORTED_FILE",
      `Row ${row} is not encoded in UTF-8; save the file as "CSV UTF-8".`,
      {
        field,
        row,
      },
    );
  throw notAccepted(kind);
}

/**
 * Creates the service for file contents.
 * @param quota maximum bytes per organization, and per user; see FILE_QUOTA
 */
export function createFiles({
  store,
  pool,
  incomingFolder,
  quota = maxQuota,
  connections,
}: FilesOptions): Files {
  const { admit } = createAdmission(pool, incomingFolder, quota, connections);

  /** The row first: it lets the sweep find the content, whatever happens while it is being stored. */
  async function keep(
    { path, size, checksum }: Incoming,
    type: string,
    admission: Admission | undefined,
  ): Promise<void> {
    const picture =
      isPicture(type) && size <= fileKinds.storeImage.limit ? await readPicture(path) : undefined;
    const { rows } = await pool.query<{ stored: boolean }>(
      "select app_private.register_file($1, $2, $3, $4, $5, $6, $7, $8) as stored",
      [
        checksum,
        type,
        size,
        picture?.width,
        picture?.height,
        admission?.organizationId,
        admission?.upload.userId,
        admission?.quota,
      ],
    );
    admission?.upload.sent.push(checksum);
    if (rows[0]!.stored) return;
    try {
      await store.put(checksum, { path }, { size, type });
      if (picture)
        await store.put(thumbnailKey(checksum), Readable.from([picture.thumbnail]), {
          size: picture.thumbnail.length,
          type: "image/webp",
        });
    } catch (error) {
      throw storeFailed("The file could not be stored; try again in a moment.", error);
    }
    await pool.query("select app_private.file_is_stored($1)", [checksum]);
  }

  async function read({ checksum }: UploadedFile): Promise<Readable> {
    const content = await store.get(checksum).catch(throwReadFailure);
    if (!content) throw new Error(`The content ${checksum} is gone.`);
    return content;
  }

  return {
    admit,
    async take(content, kind, fileName, admission) {
      const options = { folder: incomingFolder, limit: fileKinds[kind].limit, name: processName };
      return withIncoming(options, await accepted(content, kind), async (incoming) => {
        const type = await typeOf(incoming, kind);
        await keep(incoming, type, admission);
        return new UploadedFile(incoming.checksum, safeFileName(fileName, type), incoming.size, type);
      });
    },
    async release(checksums) {
      if (checksums.length === 0) return;
      await inTransaction(pool, async (client) => {
        const { rows } = await client.query<{ checksum: string }>(
          "select app_private.release_files($1) as checksum",
          [checksums],
        );
        // Before the commit: a concurrent upload of the same content waits until it is gone.
        if (rows.length > 0)
          await store.delete(rows.flatMap(({ checksum }) => [checksum, thumbnailKey(checksum)]));
      });
    },
    read,
  };
}
