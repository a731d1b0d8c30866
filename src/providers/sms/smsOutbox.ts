import { writeToOutbox } from "../writeToOutbox.ts";
import { SmsDeferred, type SmsProvider } from "./textMessage.ts";

/**
 * The embedded default: each message becomes a file `<id>.txt`. The id begins with the time, and the same message is the same file, however
 * often it is sent.
 */
export function createSmsOutbox(folder: string): SmsProvider {
  return {
    async send({ id, to, body }) {
      await writeToOutbox(folder, `${id}.txt`, `To: ${to}\n\n${body}\n`).catch(
        (error: NodeJS.ErrnoException) => {
          throw new SmsDeferred(
            `The message could not be written to the outbox folder (${error.code ?? error.name}).`,
          );
        },
      );
      return { id, status: "SENT" };
    },
    find: async () => undefined,
  };
}
