import { join } from "node:path";
import type { SmsProvider } from "./message.ts";
import { createSmsOutbox } from "./outbox.ts";
import { createTwilio, type TwilioAccount } from "./twilio.ts";

export {
  SmsDeferred,
  SmsRefused,
  type SmsNotice,
  type SmsProvider,
  type SoughtMessage,
  type TakenMessage,
  type TextMessage,
} from "./message.ts";
export type { TwilioAccount } from "./twilio.ts";

export interface SmsOptions {
  /** The real provider; without one, messages are written to the outbox folder. */
  twilio?: TwilioAccount | undefined;
  /** The outbox is the folder `outbox` in it. */
  dataDir: string;
  /** The service's own address, where the provider tells what becomes of messages; without a trailing slash. */
  baseUrl: string;
}

/** How the service sends text messages. */
export function createSmsProvider({ twilio, dataDir, baseUrl }: SmsOptions): SmsProvider {
  if (!twilio) return createSmsOutbox(join(dataDir, "outbox"));
  const { hostname } = new URL(baseUrl);
  return createTwilio({ ...twilio, baseUrl, notices: /\.[a-z]/i.test(hostname) });
}
