import { join } from "node:path";
import { createLocalFolder } from "./localFolder.ts";
import { createS3, type S3Options } from "./s3.ts";
import type { FileStore } from "./store.ts";

export { FileStoreFailed, type ByteRange, type FileStore } from "./store.ts";
export type { S3Options };

export interface FileStoreOptions {
  /** The S3-compatible store; without one, contents are kept in a folder. */
  s3?: S3Options | undefined;
  /** The folder is `files` in it. */
  dataDir: string;
}

/** Where the service keeps the contents of files. */
export function createFileStore({ s3, dataDir }: FileStoreOptions): FileStore {
  return s3 ? createS3(s3) : createLocalFolder(join(dataDir, "files"));
}
