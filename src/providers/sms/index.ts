import { join } from "node:path";
import { SmsRefused, type SmsProvider } from "./message.ts";
import { createSmsOutbox } from "./outbox.ts";
import type { TwilioAccount } from "../../base/providerOptions.ts";
import { createTwilio } from "./twilio.ts";

export {
  SmsDeferred,
  SmsRefused,
  type SmsNotice,
  type SmsProvider,
  type SoughtMessage,
  type TakenMessage,
  type TextMessage,
} from "./message.ts";

export interface SmsOptions {
  /** Where messages go: `off` refuses them, so that none is taken for sent; the outbox where omitted. */
  textMessages?: "twilio" | "outbox" | "off";
  /** The real provider. */
  twilio?: TwilioAccount | undefined;
  /** The outbox is the folder `outbox` in it. */
  dataDir: string;
  /** The service's own address, where the provider tells what becomes of messages; without a trailing slash. */
  baseUrl: string;
}

/** How the service sends text messages. */
export function createSmsProvider({ textMessages, twilio, dataDir, baseUrl }: SmsOptions): SmsProvider {
  if (textMessages === "off") return noSms;
  if (!twilio) return createSmsOutbox(join(dataDir, "outbox"));
  const { hostname } = new URL(baseUrl);
  return createTwilio({ ...twilio, baseUrl, notices: /\.[a-z]/i.test(hostname) });
}

/** Where there is no provider: nothing is sent. */
const noSms: SmsProvider = {
  send: () =>
    Promise.reject(new SmsRefused("Text messages are not set up in this service; ask its operator.")),
  find: async () => undefined,
};
