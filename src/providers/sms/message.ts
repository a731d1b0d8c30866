/** One text message to one person. */
export interface TextMessage {
  /** Names this very message; a UUID. */
  id: string;
  /** A number in E.164. */
  to: string;
  body: string;
}

/** How far the provider is with a message that it has taken; rows of app_private.message_statuses. */
export type SmsStatus = "ACCEPTED" | "SENT" | "DELIVERED" | "UNDELIVERED" | "FAILED";

/** A message that the provider has taken. */
export interface TakenMessage {
  /** What the provider calls it. */
  id: string;
  status: SmsStatus;
}

/** A message that the provider may have taken, without our knowing. */
export interface SoughtMessage extends TextMessage {
  /** It was handed over after that. */
  since: Date;
  /** What the provider calls other messages to that number. */
  known: readonly string[];
}

/** What the provider tells by itself: how far a message is, or what somebody answered. */
export type SmsNotice =
  | { id: string; providerId: string; status: SmsStatus; error: string | null }
  | { providerId: string; from: string; text: string; meaning: "STOP" | "START" | "HELP" | null };

export interface SmsProvider {
  /**
   * Hands a message over.
   * @throws SmsRefused when it is useless to try again, SmsDeferred when it is not.
   */
  send(message: TextMessage): Promise<TakenMessage>;
  /**
   * Looks for a message that was handed over, when nobody knows what became of it.
   * @throws SmsDeferred when the provider cannot be asked.
   */
  find(message: SoughtMessage): Promise<TakenMessage | undefined>;
  /**
   * What a request to /webhooks/messages says: null where nothing of interest, undefined where the provider has not signed it.
   * @param path with the query.
   */
  readonly readNotice?: (request: {
    path: string;
    body: string;
    signature: string | undefined;
  }) => SmsNotice | null | undefined;
}

/** The other side will never take this message: there is no such number, no mobile phone, or its owner wants none. */
export class SmsRefused extends Error {
  override name = "SmsRefused";
  /** Whether the owner of the number answered STOP. */
  readonly stopped: boolean;

  constructor(message: string, stopped = false) {
    super(message);
    this.stopped = stopped;
  }
}

/** The message could not be handed over now; a later try may succeed. */
export class SmsDeferred extends Error {
  override name = "SmsDeferred";
  /** Whether the provider may have the message nevertheless. */
  readonly mayBeTaken: boolean;
  /** Set where the provider asks to come back later. */
  readonly retryAfterSeconds: number | undefined;

  constructor(message: string, options: { mayBeTaken?: boolean; retryAfterSeconds?: number } = {}) {
    super(message);
    this.mayBeTaken = options.mayBeTaken ?? false;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
