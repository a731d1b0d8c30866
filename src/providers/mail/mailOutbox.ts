import { randomBytes } from "node:crypto";
import { writeToOutbox } from "../writeToOutbox.ts";
import { compose } from "./composeMail.ts";
import { mailPackage } from "./mailPackage.ts";
import { MailDeferred, type MailProvider } from "./mailMessage.ts";

/**
 * The embedded default: each mail becomes a file `<time>-<random>.eml`, which mail programs can open.
 * @param folder created if it is missing.
 */
export function createOutbox(folder: string, from: string): MailProvider {
  const open = () =>
    mailPackage().createTransport({ streamTransport: true, buffer: true, newline: "windows" });
  let transport: ReturnType<typeof open> | undefined;
  return {
    async send(message) {
      const { message: content } = await (transport ??= open()).sendMail(compose(message, from));
      const time = new Date().toISOString().replace(/[-:.]/g, "");
      const id = `${time}-${randomBytes(6).toString("hex")}.eml`;
      await writeToOutbox(folder, id, content as Buffer).catch((error: NodeJS.ErrnoException) => {
        throw new MailDeferred(`The mail could not be written to the outbox folder (${error.code}).`);
      });
      return { id };
    },
    async close() {
      transport?.close();
    },
  };
}
