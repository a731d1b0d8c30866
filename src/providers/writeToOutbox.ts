/** The outbox folder: mails and text messages that would have been sent. */
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Writes a file atomically into the folder, which is created if it is missing. Files are only readable for the user of the service, because
 * they contain codes and links.
 */
export async function writeToOutbox(folder: string, name: string, content: string | Buffer): Promise<void> {
  const unfinished = join(folder, `.${name}.part`);
  try {
    await mkdir(folder, { recursive: true, mode: 0o700 });
    await chmod(folder, 0o700);
    await writeFile(unfinished, content, { mode: 0o600, flush: true });
    await rename(unfinished, join(folder, name));
  } catch (error) {
    await rm(unfinished, { force: true }).catch(() => {});
    throw error;
  }
}
