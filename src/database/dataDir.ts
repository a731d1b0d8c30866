import { accessSync, constants, mkdirSync } from "node:fs";

/**
 * Creates the data folder when it is missing. Made by root it lets other users pass through, since the
 * embedded database runs as one; each secret inside has a mode of its own.
 * @throws Error with a sentence for the user when the folder cannot be used.
 */
export function prepareDataDir(dataDir: string): void {
  try {
    mkdirSync(dataDir, { recursive: true, mode: process.getuid?.() === 0 ? 0o711 : 0o700 });
    accessSync(dataDir, constants.R_OK | constants.W_OK | constants.X_OK);
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (!code) throw error;
    throw new Error(
      `The data folder ${dataDir} cannot be used (${code}); make it writable for this user, or choose another one with DATA_DIR.`,
      { cause: error },
    );
  }
}
