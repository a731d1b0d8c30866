import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";

/** Another process has the data folder. Its message is a sentence for the user. */
export class FolderInUse extends Error {}

/**
 * Takes a data folder for this process alone. The lock is SQLite's file lock: the kernel drops it when the
 * process dies, however it dies, so that there is no stale lock to judge; a pid file could not promise that.
 * @returns the function that gives the folder back.
 * @throws FolderInUse when another process has it.
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
