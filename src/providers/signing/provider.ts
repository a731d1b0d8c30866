import type { Readable } from "node:stream";

/** What is to be signed, and by whom. */
export interface Envelope {
  /** The same for each try to hand the same over. */
  transactionId: string;
  agreementId: string;
  title: string;
  /** Who asks. */
  organization: string;
  expiresAt: Date | null;
  /** Undefined for never. */
  reminderDays: number | undefined;
  document: { filename: string; size: number; content: () => Promise<Readable> };
  signers: { id: string; name: string; email: string; sequence: number; role: string }[];
}

/** How far a provider is with an envelope. */
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

/** Where one agreement is signed, from its sending to its end. Each call may be made again, and has its effect once. */
export interface SigningProvider {
  /** Whether signers get their mails from here, rather than from the provider. */
  readonly writesItself: boolean;
  /** Hands an envelope over. @returns what it is called there @throws SigningFailed */
  send(envelope: Envelope): Promise<string>;
  /** How far an envelope is. @throws SigningFailed */
  state(envelopeId: string): Promise<EnvelopeState>;
  /** What proves what was signed, once all have. @throws SigningFailed */
  proof(envelopeId: string | undefined): Promise<Proof[]>;
  /** Nobody is to sign it any more. @throws SigningFailed */
  end(envelopeId: string, reason: string): Promise<void>;
  /** Asks those once more whose turn it is. @throws SigningFailed */
  remind(envelopeId: string): Promise<void>;
}

/** The provider did not do it. The message is for people, and has nothing secret in it. */
export class SigningFailed extends Error {
  override name = "SigningFailed";
  /** REFUSED: this envelope never; SETTINGS: the account has to be put right; LATER: by itself. */
  readonly kind: "REFUSED" | "SETTINGS" | "LATER";
  /** Set where the provider asks to come back later. */
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
