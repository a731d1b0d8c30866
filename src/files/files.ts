/** Takes a content in: checks it, stores it once, and tells SQL what to refer to. */
import { Readable } from "node:stream";
import type { Pool } from "pg";
import { CodedError } from "../errors.ts";
import type { FileStore } from "../providers/files/index.ts";
import { contentType, lineNotUtf8 } from "./contentType.ts";
import { safeFileName } from "./fileName.ts";
import { withIncoming, type Incoming } from "./incoming.ts";
import { fileKinds, isPicture, type FileKindName } from "./kinds.ts";
import { readPicture } from "./picture.ts";
import { UploadedFile } from "./uploadedFile.ts";

export interface FilesOptions {
  store: FileStore;
  /** Connections of plat_authenticator. */
  pool: Pool;
  /** For content on its way in. */
  incomingFolder: string;
}

export interface Files {
  /**
   * Stores a content. It stays when a row refers to it within a day.
   * @throws CodedError PAYLOAD_TOO_LARGE, UNSUPPORTED_FILE, BAD_USER_INPUT or PROVIDER_ERROR
   */
  take(content: Readable, kind: FileKindName, fileName: string | undefined): Promise<UploadedFile>;
  /** The content of a file that was taken in. */
  read(file: UploadedFile): Promise<Readable>;
}

export const thumbnailKey = (checksum: string): string => `${checksum}.thumbnail`;

const storeFailed = (message: string, cause: unknown): CodedError =>
  new CodedError("PROVIDER_ERROR", message, { provider: "files", retryable: true }, { cause });

async function typeOf({ path, size }: Incoming, kind: FileKindName): Promise<string> {
  const field = "file";
  if (size === 0) throw new CodedError("BAD_USER_INPUT", "The file is empty.", { field });
  const { types, accepted } = fileKinds[kind];
  const type = await contentType(path, size);
  if (type !== undefined && (types as readonly string[]).includes(type)) return type;
  const row = kind === "loadRows" && type === undefined ? await lineNotUtf8(path) : undefined;
  if (row !== undefined)
    throw new CodedError("UNSUPPORTED_FILE", `Row ${row} is not in UTF-8; save the file as "CSV UTF-8".`, {
      field,
      row,
    });
  throw new CodedError(
    "UNSUPPORTED_FILE",
    `This is, by its content, no file of an accepted type: ${accepted}.`,
    {
      field,
    },
  );
}

export function createFiles({ store, pool, incomingFolder }: FilesOptions): Files {
  /** The row first: it tells the sweep, whatever happens while the content is being stored. */
  async function keep({ path, size, checksum }: Incoming, type: string): Promise<void> {
    const picture =
      isPicture(type) && size <= fileKinds.storeImage.limit ? await readPicture(path) : undefined;
    const { rows } = await pool.query<{ stored: boolean }>(
      "select app_private.register_file($1, $2, $3, $4, $5) as stored",
      [checksum, type, size, picture?.width, picture?.height],
    );
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
    const content = await store.get(checksum).catch((error) => {
      throw storeFailed("The file could not be read; try again in a moment.", error);
    });
    if (!content) throw new Error(`The content ${checksum} is gone.`);
    return content;
  }

  return {
    take: (content, kind, fileName) =>
      withIncoming({ folder: incomingFolder, limit: fileKinds[kind].limit }, content, async (incoming) => {
        const type = await typeOf(incoming, kind);
        await keep(incoming, type);
        return new UploadedFile(incoming.checksum, safeFileName(fileName, type), incoming.size, type);
      }),
    read,
  };
}
