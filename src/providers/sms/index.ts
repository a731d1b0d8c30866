import { join } from "node:path";
import { SmsRefused, type SmsProvider } from "./textMessage.ts";
import { createSmsOutbox } from "./smsOutbox.ts";
import type { TwilioAccount } from "../../base/providerOptions.ts";
import { createTwilio } from "./twilio.ts";

export {
  SmsDeferred,
  SmsRefused,
  type SmsNotice,
  type SmsProvider,
  type UncertainMessage,
  type AcceptedMessage,
  type TextMessage,
} from "./textMessage.ts";

export interface SmsOptions {
  /** The target of messages: `off` refuses them, so that none counts as sent; the outbox by default. */
  textMessages?: "twilio" | "outbox" | "off";
  /** The real provider. */
  twilio?: TwilioAccount | undefined;
  /** The outbox is the folder `outbox` in it. */
  dataDir: string;
  /** The URL of the service, for delivery reports of the provider; without a trailing slash. */
  baseUrl: string;
}

/** Creates the provider of text messages: Twilio, the outbox folder, or none. */
export function createSmsProvider({ textMessages, twilio, dataDir, baseUrl }: SmsOptions): SmsProvider {
  if (textMessages === "off") return noSms;
  if (!twilio) return createSmsOutbox(join(dataDir, "outbox"));
  const { hostname } = new URL(baseUrl);
  return createTwilio({ ...twilio, baseUrl, notices: /\.[a-z]/i.test(hostname) });
}

/** Without a provider, nothing is sent. */
const noSms: SmsProvider = {
  send: () =>
    Promise.reject(new SmsRefused("Text messages are not set up in this service; ask its operator.")),
  find: async () => undefined,
};
