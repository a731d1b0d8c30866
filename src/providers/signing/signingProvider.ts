import type { Readable } from "node:stream";

/** The document and its signers. */
export interface Envelope {
  /** Idempotency key of the submission. */
  transactionId: string;
  agreementId: string;
  title: string;
  /** The sender. */
  organization: string;
  expiresAt: Date | null;
  /** Undefined for never. */
  reminderDays: number | undefined;
  document: { filename: string; size: number; content: () => Promise<Readable> };
  signers: { id: string; name: string; email: string; sequence: number; role: string }[];
}

/** The state of an envelope at a provider. */
export interface EnvelopeState {
  status: "OPEN" | "COMPLETED" | "DECLINED" | "VOIDED";
  /** Why it was voided. */
  reason: string | null;
  signers: {
    /** The id of our signer. */
    id: string;
    status: "INVITED" | "VIEWED" | "SIGNED" | "DECLINED" | "WAITING";
    at: Date | null;
    reason: string | null;
  }[];
}

/** A file that proves what was signed. */
export interface Proof {
  kind: "SIGNED" | "CERTIFICATE";
  filename: string;
  content: Buffer;
}

/** A signing provider, for the whole life of an agreement. Each call is idempotent. */
export interface SigningProvider {
  /** Whether the service mails the signers, rather than the provider. */
  readonly writesItself: boolean;
  /** Submits an envelope. @returns its id there @throws SigningFailed */
  send(envelope: Envelope): Promise<string>;
  /** The state of an envelope. @throws SigningFailed */
  state(envelopeId: string): Promise<EnvelopeState>;
  /** The proof of signatures, once all have signed. @throws SigningFailed */
  proof(envelopeId: string | undefined): Promise<Proof[]>;
  /** Cancels the envelope for its signers. @throws SigningFailed */
  end(envelopeId: string, reason: string): Promise<void>;
  /** Reminds the signers whose turn it is. @throws SigningFailed */
  remind(envelopeId: string): Promise<void>;
}

/** The provider failed. The message is for people, and contains no secrets. */
export class SigningFailed extends Error {
  override name = "SigningFailed";
  /** REFUSED: permanently, for this envelope; SETTINGS: the account must be corrected; LATER: a retry may succeed. */
  readonly kind: "REFUSED" | "SETTINGS" | "LATER";
  /** Set if the provider asks for a delay. */
  readonly retryAfterSeconds: number | undefined;

  constructor(
    kind: "REFUSED" | "SETTINGS" | "LATER",
    message: string,
    options: ErrorOptions & { retryAfterSeconds?: number | undefined } = {},
  ) {
    super(message, options);
    this.kind = kind;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
