/** Contents of files in the archive. */
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { onConnection } from "../../database/onConnection.ts";
import { ownerUrl } from "../../database/roles.ts";
import { createLocalFolder } from "./localFolder.ts";
import { thumbnailKey, type FileStore } from "./store.ts";
import { contentsFolder } from "../../database/backupSeries.ts";

const type = "application/octet-stream";

/** Keys of the contents that a database says are stored, thumbnails included. */
export async function storedContents(loginUrl: string): Promise<string[]> {
  const { rows } = await onConnection(ownerUrl(loginUrl), (client) =>
    client.query<{ checksum: string; picture: boolean }>(
      // That of zeros stands for what a dry run would store.
      `select checksum, width is not null as picture from app_private.stored_files
       where is_stored and checksum <> repeat('0', 64) order by 1`,
    ),
  );
  return rows.flatMap(({ checksum, picture }) => [checksum, ...(picture ? [thumbnailKey(checksum)] : [])]);
}

/**
 * Copies contents that the other store lacks.
 * @returns how many were copied, and the keys of those that the first store does not have.
 */
export async function copyContents(
  from: FileStore,
  to: FileStore,
  keys: readonly string[],
): Promise<{ copied: number; missing: string[] }> {
  const missing: string[] = [];
  let copied = 0;
  for (const key of keys) {
    if ((await to.size(key)) !== undefined) continue;
    const size = await from.size(key);
    const content = size === undefined ? undefined : await from.get(key);
    if (!content || size === undefined) missing.push(key);
    else {
      await to.put(key, content, { size, type });
      copied++;
    }
  }
  return { copied, missing };
}

/**
 * A store that keeps a copy of whatever is put into it in the archive as well, before it says that it is stored. What is deleted
 * stays in the archive as long as an earlier moment needs it.
 */
export function archivedStore(store: FileStore, archive: string): FileStore {
  const folder = contentsFolder(archive);
  const copies = createLocalFolder(folder);
  return {
    ...store,
    async put(key, content, of) {
      await store.put(key, content, of);
      await copyContents(store, copies, [key]);
      // Of one that was there before: it is needed from now on.
      const now = new Date();
      await utimes(join(folder, key.slice(0, 2), key.slice(2)), now, now);
    },
    async sweep(before) {
      await Promise.all([store.sweep(before), copies.sweep(before)]);
    },
  };
}
