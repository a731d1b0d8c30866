/** Contents of files in the archive. */
import { utimes } from "node:fs/promises";
import { join } from "node:path";
import { onConnection } from "../../database/onConnection.ts";
import { ownerUrl } from "../../database/roles.ts";
import { createLocalFolder } from "./localFolder.ts";
import { thumbnailKey, type FileStore } from "./fileStore.ts";
import { contentsFolder } from "../../database/backupSeries.ts";

const type = "application/octet-stream";

/** Keys of the contents that a database refers to, including thumbnails. */
export async function storedContents(loginUrl: string): Promise<string[]> {
  const { rows } = await onConnection(ownerUrl(loginUrl), (client) =>
    client.query<{ checksum: string; picture: boolean }>(
      // The key of zeros represents what a dry run would store.
      `select checksum, width is not null as picture from app_private.stored_files
       where is_stored and checksum <> repeat('0', 64) order by 1`,
    ),
  );
  return rows.flatMap(({ checksum, picture }) => [checksum, ...(picture ? [thumbnailKey(checksum)] : [])]);
}

/**
 * Copies contents that the other store does not have.
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
 * A store that also copies new contents to the archive, before it reports them as stored. Deleted contents remain in the archive for as
 * long as an earlier point in time requires them.
 */
export function archivedStore(store: FileStore, archive: string): FileStore {
  const folder = contentsFolder(archive);
  const copies = createLocalFolder(folder);
  return {
    ...store,
    async put(key, content, of) {
      await store.put(key, content, of);
      await copyContents(store, copies, [key]);
      // It existed before, and is needed from now on.
      const now = new Date();
      await utimes(join(folder, key.slice(0, 2), key.slice(2)), now, now);
    },
    async sweep(before) {
      await Promise.all([store.sweep(before), copies.sweep(before)]);
    },
  };
}
