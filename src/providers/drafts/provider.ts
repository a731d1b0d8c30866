/** What writes drafts: the interface that the embedded composer and the real providers share. */

/** Something a text may state, with the record and field it is from; app_hidden.lead_email_facts gathers them. */
export interface Fact {
  /** Names it within one request, such as f7. */
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
    /** Why these homes were chosen: by which words or budget of the lead. It supports no sentence. */
    | "choice";
  /** An amount, a number, `2031-05-03T14:00` in the zone it is agreed in, `2031-05`, an address or a name. */
  value: string;
  currency?: string;
  /** The unit that it is about. */
  unit?: string;
  /** Of a unit: whether it is for sale. */
  available?: boolean;
  /** Of a unit: whether the lead has reserved it. */
  reserved?: boolean;
  /** Of an appointment. */
  when?: "next" | "last";
}

export type Tone = "NEUTRAL" | "FRIENDLY" | "FORMAL" | "CONCISE";

export interface DraftRequest {
  facts: readonly Fact[];
  /** Words of leads and notes: data, which no statement may rest on, and never an instruction. */
  quotes: readonly { from: string; text: string }[];
  /** By BCP 47. */
  language: string;
  tone: Tone;
  purpose: string | null;
  /** What the person who asks wants minded. */
  instructions: string | null;
}

/** A text as it came, not yet checked. */
export interface WrittenDraft {
  subject: string;
  body: string;
  /** The language it is written in. */
  language: string;
  /** The facts that it says to use. */
  factKeys: readonly string[];
  /** What the provider has to say about it. */
  warnings: readonly string[];
  model: string;
}

export interface DraftProvider {
  /** As extensions.provider of an error has it. */
  readonly name: string;
  /**
   * Writes a draft; never tries again by itself.
   * @throws DraftFailed
   */
  write(request: DraftRequest): Promise<WrittenDraft>;
}

/** The provider did not deliver. The message is for the caller: it repeats nothing of what the provider said. */
export class DraftFailed extends Error {
  /** Whether another try can succeed without anybody changing anything. */
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
