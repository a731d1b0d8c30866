/** The interface of providers of drafts, embedded and real. */

/** A fact that a text may state, with the record and field of its origin; collected by app_hidden.lead_email_facts. */
export interface Fact {
  /** Its name within one request, such as f7. */
  key: string;
  statement: string;
  subjectType: string;
  subjectId: string;
  field: string;
  kind:
    | "person"
    | "name"
    | "place"
    | "link"
    | "unit"
    | "money"
    | "percent"
    | "count"
    | "time"
    | "month"
    | "state"
    /** Why these homes were chosen: the words or budget of the lead. It supports no sentence. */
    | "choice";
  /** An amount, a number, `2031-05-03T14:00` in the agreed time zone, `2031-05`, an address or a name. */
  value: string;
  currency?: string;
  /** The unit under negotiation. */
  unit?: string;
  /** For units: whether it is for sale. */
  available?: boolean;
  /** For units: whether the lead has reserved it. */
  reserved?: boolean;
  /** For appointments. */
  when?: "next" | "last";
}

export type Tone = "NEUTRAL" | "FRIENDLY" | "FORMAL" | "CONCISE";

export interface DraftRequest {
  facts: readonly Fact[];
  /** Words of leads and notes: data that support no statement, and never instructions. */
  quotes: readonly { from: string; text: string }[];
  /** A BCP 47 tag. */
  language: string;
  tone: Tone;
  purpose: string | null;
  /** Additional wishes of the requester. */
  instructions: string | null;
}

/** A text as received, not yet checked. */
export interface WrittenDraft {
  subject: string;
  body: string;
  /** Language of the text, such as en. */
  language: string;
  /** The facts that it claims to use. */
  factKeys: readonly string[];
  /** Remarks of the provider. */
  warnings: readonly string[];
  model: string;
}

export interface DraftProvider {
  /** Its name in extensions.provider of an error. */
  readonly name: string;
  /**
   * Writes a draft; never retries.
   * @throws DraftFailed
   */
  write(request: DraftRequest): Promise<WrittenDraft>;
}

/** The provider failed. The message is for the client and repeats nothing that the provider said. */
export class DraftFailed extends Error {
  /** Whether a retry can succeed without any change. */
  readonly retryable: boolean;
  readonly retryAfterSeconds: number | undefined;

  constructor(
    message: string,
    retryable: boolean,
    options: ErrorOptions & { retryAfterSeconds?: number } = {},
  ) {
    super(message, options);
    this.name = "DraftFailed";
    this.retryable = retryable;
    this.retryAfterSeconds = options.retryAfterSeconds;
  }
}
