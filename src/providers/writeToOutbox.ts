/** The folder of what would have been sent: mails and text messages. */
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";

/**
 * Writes a file into the folder, which is made when it is missing; it appears complete or not at all. Files are readable for the
 * service's own user only, since codes and links stand in them.
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
