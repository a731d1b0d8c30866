import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";

/** Another process uses the data folder. The message is meant for the user. */
export class FolderInUse extends Error {}

/**
 * Locks a data folder for this process. The lock is SQLite's file lock: the kernel releases it when the process dies
 * for any reason, so there are no stale locks, unlike with pid files.
 * @returns the function that releases the lock
 * @throws FolderInUse if another process holds it
 */
export function lockFolder(folder: string): () => void {
  const file = new DatabaseSync(join(folder, "service.lock"));
  try {
    file.exec("pragma busy_timeout = 0; pragma journal_mode = memory; begin exclusive");
  } catch (error) {
    file.close();
    if ((error as { errcode?: number }).errcode !== 5) throw error;
    throw new FolderInUse(
      `Another Plat process is using the data folder ${folder}; stop it first, or choose another folder with DATA_DIR.`,
      { cause: error },
    );
  }
  return () => {
    if (file.isOpen) file.close();
  };
}
