/**
 * Sends the text message of a SEND_SMS step. The database decides what to do and has recorded it:
 * app_private.begin_messages.
 */
import { SmsDeferred, SmsRefused, type SmsProvider } from "../providers/sms/index.ts";

export interface Message {
  /** FIND: it may have been sent by a worker that died or got no response. */
  result: "SEND" | "FIND";
  id: string;
  to: string;
  body: string;
  since?: string;
  known: string[];
}

/** Milliseconds after it was recorded within which a message may be sent; recovery checks it after one minute. */
const sendWithinMs = 20_000;

/**
 * Sends a message, or looks it up; the result is for app_private.step_send_sms. Never throws.
 * @param notedAt `performance.now()` of this process, no later than the message was recorded
 */
export async function sendTextMessage(
  sms: SmsProvider,
  message: Message,
  notedAt: number,
): Promise<Record<string, unknown>> {
  const { result, id, to, body, known } = message;
  // A process that was suspended is too late: another one may have looked it up.
  if (result === "SEND" && performance.now() - notedAt > sendWithinMs) return { result: "ABSENT" };
  try {
    if (result === "SEND") return { result: "TAKEN", ...(await sms.send({ id, to, body })) };
    const found = await sms.find({ id, to, body, known, since: new Date(message.since!) });
    return found ? { result: "TAKEN", ...found } : { result: "ABSENT" };
  } catch (error) {
    if (error instanceof SmsRefused)
      return { result: error.stopped ? "STOPPED" : "REFUSED", error: error.message };
    const { mayBeTaken, retryAfterSeconds: seconds } = error as Partial<SmsDeferred>;
    // The outcome of a message that could not be looked up is unknown.
    const isUnknown = result === "FIND" || mayBeTaken !== false;
    if (seconds === undefined)
      return { result: isUnknown ? "UNKNOWN" : "UNTAKEN", error: (error as Error).message };
    return isUnknown
      ? { result: "WAIT", until: new Date(Date.now() + seconds * 1000).toISOString() }
      : { result: "BUSY", seconds };
  }
}
