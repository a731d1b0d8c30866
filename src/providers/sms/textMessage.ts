/** One text message to one person. */
export interface TextMessage {
  /** Identifies this message; a UUID. */
  id: string;
  /** A number in E.164. */
  to: string;
  body: string;
}

/** The state of an accepted message at the provider; rows of app_private.message_statuses. */
export type SmsStatus = "ACCEPTED" | "SENT" | "DELIVERED" | "UNDELIVERED" | "FAILED";

/** A message that the provider has accepted. */
export interface AcceptedMessage {
  /** Its id at the provider. */
  id: string;
  status: SmsStatus;
}

/** A message that the provider may have accepted without our knowledge. */
export interface UncertainMessage extends TextMessage {
  /** It was submitted after that. */
  since: Date;
  /** Ids of other messages to that number. */
  known: readonly string[];
}

/** A callback of the provider: the state of a message, or a reply. */
export type SmsNotice =
  | { id: string; providerId: string; status: SmsStatus; error: string | null }
  | { providerId: string; from: string; text: string; meaning: "STOP" | "START" | "HELP" | null };

export interface SmsProvider {
  /**
   * Submits a message.
   * @throws SmsRefused if a retry is useless, SmsDeferred otherwise.
   */
  send(message: TextMessage): Promise<AcceptedMessage>;
  /**
   * Searches for a submitted message whose result is unknown.
   * @throws SmsDeferred if the provider is unavailable.
   */
  find(message: UncertainMessage): Promise<AcceptedMessage | undefined>;
  /**
   * The content of a request to /webhooks/messages: null if irrelevant, undefined if the signature is invalid.
   * @param path with the query.
   */
  readonly readNotice?: (request: {
    path: string;
    body: string;
    signature: string | undefined;
  }) => SmsNotice | null | undefined;
}

/** The message will never be accepted: the number does not exist, is not mobile, or its owner has opted out. */
export class SmsRefused extends Error {
  override name = "SmsRefused";
  /** Whether the owner of the number replied STOP. */
  readonly stopped: boolean;

  constructor(message: string, stopped = false) {
    super(message);
    this.stopped = stopped;
  }
}

/** The message could not be submitted now; a retry may succeed. */
export class SmsDeferred extends Error {
  override name = "SmsDeferred";
  /** Whether the provider may nevertheless have the message. */
  readonly mayBeTaken: boolean;
  /** Set if the provider asks for a delay. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: { mayBeTaken?: boolean; retryAfterSeconds?: number } = {}) {
    super(message);
    this.mayBeTaken = options.mayBeTaken ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
