import { join } from "node:path";
import { archivedStore } from "./contents.ts";
import { createLocalFolder } from "./localFolder.ts";
import type { S3Options } from "../../base/providerOptions.ts";
import { createS3 } from "./s3.ts";
import type { FileStore } from "./fileStore.ts";

export { FileStoreFailed, thumbnailKey, type ByteRange, type FileStore } from "./fileStore.ts";
export type { S3Options };

export interface FileStoreOptions {
  /** The S3-compatible store; without one, contents are stored in a folder. */
  s3?: S3Options | undefined;
  /** The folder is `files` in it. */
  dataDir: string;
  /** Folder to which contents are also copied. S3-compatible stores have their own means. */
  archive?: string | undefined;
}

/** The store of file contents. */
export function createFileStore({ s3, dataDir, archive }: FileStoreOptions): FileStore {
  if (s3) return createS3(s3);
  const folder = createLocalFolder(join(dataDir, "files"));
  return archive ? archivedStore(folder, archive) : folder;
}
