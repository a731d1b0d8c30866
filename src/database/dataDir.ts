import { accessSync, constants, mkdirSync } from "node:fs";

/**
 * Creates the data folder if it is missing. If root creates it, other users may traverse it, since the embedded
 * database runs as one; each secret in it has its own mode.
 * @throws Error with a message for the user if the folder cannot be used.
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
