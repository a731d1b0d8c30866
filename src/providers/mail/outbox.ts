import { randomBytes } from "node:crypto";
import { chmod, mkdir, rename, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { createTransport } from "nodemailer";
import { compose } from "./compose.ts";
import { MailDeferred, type MailProvider } from "./message.ts";

/**
 * The embedded default: each mail becomes a file `<time>-<random>.eml`, which any mail program opens. Files are
 * readable for the service's own user only, since codes and links stand in them, and appear complete or not at all.
 * @param folder made when it is missing.
 */
export function createOutbox(folder: string, from: string): MailProvider {
  const transport = createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  return {
    async send(message) {
      const { message: content } = await transport.sendMail(compose(message, from));
      const time = new Date().toISOString().replace(/[-:.]/g, "");
      const id = `${time}-${randomBytes(6).toString("hex")}.eml`;
      const unfinished = join(folder, `.${id}.part`);
      try {
        await mkdir(folder, { recursive: true, mode: 0o700 });
        await chmod(folder, 0o700);
        await writeFile(unfinished, content as Buffer, { mode: 0o600, flag: "wx", flush: true });
        await rename(unfinished, join(folder, id));
      } catch (error) {
        await rm(unfinished, { force: true }).catch(() => {});
        throw new MailDeferred(
          `The mail could not be written to the outbox folder (${(error as NodeJS.ErrnoException).code}).`,
        );
      }
      return { id };
    },
    async close() {
      transport.close();
    },
  };
}
