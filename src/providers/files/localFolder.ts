import { randomBytes } from "node:crypto";
import { createWriteStream } from "node:fs";
import { constants, copyFile, mkdir, open, rename, rm, stat } from "node:fs/promises";
import { dirname, join } from "node:path";
import { Readable } from "node:stream";
import { pipeline } from "node:stream/promises";
import { removeLeftovers } from "./leftovers.ts";
import { ignoreEarlyErrors } from "../../base/ignoreEarlyErrors.ts";
import type { FileStore } from "./fileStore.ts";

/**
 * The embedded default: each content is a file in the folder, named by its key, readable only for the user of the service; files are
 * created atomically.
 * @param folder created if it is missing.
 */
export function createLocalFolder(folder: string): FileStore {
  const unfinishedFolder = join(folder, "unfinished");
  /** Distributed over 256 folders, because keys begin with a SHA-256. */
  const pathOf = (key: string): string => {
    if (!/^[a-z0-9]{3,}(\.[a-z0-9]+)*$/.test(key)) throw new Error("Not a valid key of a file.");
    return join(folder, key.slice(0, 2), key.slice(2));
  };
  return {
    async put(key, content) {
      if (content instanceof Readable) ignoreEarlyErrors(content);
      const path = pathOf(key);
      const unfinished = join(unfinishedFolder, `${randomBytes(12).toString("hex")}.part`);
      for (const parent of [dirname(path), unfinishedFolder])
        await mkdir(parent, { recursive: true, mode: 0o700 });
      try {
        // The system copies the file, without using our memory.
        if (content instanceof Readable)
          await pipeline(content, createWriteStream(unfinished, { flags: "wx", mode: 0o600 }));
        else await copyFile(content.path, unfinished, constants.COPYFILE_EXCL);
        await syncToDisk(unfinished);
        await rename(unfinished, path);
      } catch (error) {
        await rm(unfinished, { force: true });
        throw error;
      }
    },
    async get(key, range) {
      const file = await open(pathOf(key)).catch(ignoreMissing);
      return file && ignoreEarlyErrors(file.createReadStream(range));
    },
    async size(key) {
      return (await stat(pathOf(key)).catch(ignoreMissing))?.size;
    },
    async delete(keys) {
      for (const key of keys) await rm(pathOf(key), { force: true });
    },
    sweep: (before) => removeLeftovers(unfinishedFolder, { before }),
    async close() {},
  };
}

/** Makes the file durable, and readable only for the user of the service. */
async function syncToDisk(path: string): Promise<void> {
  const file = await open(path, "r+");
  try {
    await file.chmod(0o600);
    await file.sync();
  } finally {
    await file.close();
  }
}

function ignoreMissing(error: NodeJS.ErrnoException): undefined {
  if (error.code !== "ENOENT") throw error;
}
