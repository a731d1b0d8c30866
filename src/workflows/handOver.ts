/** The text message of a step SEND_SMS; the database says what is to be done, and has noted it: app_private.begin_messages. */
import { SmsDeferred, SmsRefused, type SmsProvider } from "../providers/sms/index.ts";

export interface Message {
  /** FIND: it may have been handed over, by a worker that died or was not answered. */
  result: "SEND" | "FIND";
  id: string;
  to: string;
  body: string;
  since?: string;
  known: string[];
}

/** How long after it was noted a message may still be handed over; whoever looks for it does so after a minute. */
const handOverWithinMs = 20_000;

/**
 * Hands a message over, or looks for it; what came of it is for app_private.step_send_sms. Never throws.
 * @param notedAt by `performance.now()` of this process, not later than the message was noted.
 */
export async function handOver(
  sms: SmsProvider,
  message: Message,
  notedAt: number,
): Promise<Record<string, unknown>> {
  const { result, id, to, body, known } = message;
  // A process that was stopped meanwhile comes too late: another one may have looked for it by now.
  if (result === "SEND" && performance.now() - notedAt > handOverWithinMs) return { result: "ABSENT" };
  try {
    if (result === "SEND") return { result: "TAKEN", ...(await sms.send({ id, to, body })) };
    const found = await sms.find({ id, to, body, known, since: new Date(message.since!) });
    return found ? { result: "TAKEN", ...found } : { result: "ABSENT" };
  } catch (error) {
    if (error instanceof SmsRefused)
      return { result: error.stopped ? "STOPPED" : "REFUSED", error: error.message };
    const { mayBeTaken, retryAfterSeconds: seconds } = error as Partial<SmsDeferred>;
    // Nothing is known of a message that could not be looked for.
    const isUnknown = result === "FIND" || mayBeTaken !== false;
    if (seconds === undefined)
      return { result: isUnknown ? "UNKNOWN" : "UNTAKEN", error: (error as Error).message };
    return isUnknown
      ? { result: "WAIT", until: new Date(Date.now() + seconds * 1000).toISOString() }
      : { result: "BUSY", seconds };
  }
}
