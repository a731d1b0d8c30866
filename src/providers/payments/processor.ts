/** What the service asks of a payment processor. Amounts are decimals as text, statuses those of the API. */

/** A card as the processor keeps it. */
export interface Card {
  id: string;
  brand: string;
  last4: string;
  expMonth: number;
  expYear: number;
  funding: string;
  holderName: string | null;
  country: string | null;
  fingerprint: string;
}

/** A payment as the database began it; see app_private.payment_facts. */
export interface PaymentFacts {
  id: string;
  processorId: string | null;
  status: string;
  /** Whether something can become of it yet. */
  open: boolean;
  /** Whether it is confirmed at once, with the card. */
  confirm: boolean;
  amount: string;
  currency: string;
  description: string | null;
  customerId: string | null;
  cardId: string | null;
  accountId: string | null;
  metadata: Record<string, string>;
}

/** What became of a payment; app_private.note_payment takes it. */
export interface PaymentState {
  id: string;
  status: string;
  clientSecret: string | null;
  nextActionUrl: string | null;
  failure: { code: string; message: string } | null;
  charge: ChargeState | null;
}

export interface ChargeState {
  id: string;
  status: "PENDING" | "SUCCEEDED" | "FAILED";
  fee: string | null;
  net: string | null;
  method: string;
  brand: string | null;
  last4: string | null;
  statementDescriptor: string | null;
  receiptUrl: string | null;
  failureCode: string | null;
  failureMessage: string | null;
  capturedAt: string | null;
  disputeStatus: "OPEN" | "WON" | "LOST" | null;
  disputedAt: string | null;
  refunds: RefundState[];
}

/** A refund as the database began it; see app_private.refund_facts. */
export interface RefundFacts {
  id: string;
  chargeId: string;
  processorId: string | null;
  processorChargeId: string;
  amount: string;
  currency: string;
  reason: string;
  open: boolean;
  /** Whether it was begun at this moment, so that nobody can have made it. */
  isNew?: boolean;
  /** Whether the money went on to the account of an organization, which gives it back. */
  toAccount: boolean;
}

export interface RefundState {
  id: string;
  amount: string;
  status: string;
  reason: string;
  failureMessage: string | null;
  /** Our id of it, where the service made it. */
  ours: string | null;
}

/** The members of an address, as the database has them. */
export type AddressFacts = Partial<
  Record<
    "thoroughfare" | "premise" | "locality" | "administrative_area" | "postal_code" | "country",
    string | null
  >
>;

/** A representative as the database began it; see app_private.representative_facts. */
export interface RepresentativeFacts {
  id: string;
  organizationId: string;
  accountId: string | null;
  personId: string | null;
  kind: string;
  firstName: string;
  lastName: string;
  email: string;
  phone: string | null;
  /** YYYY-MM-DD. */
  dob: string | null;
  title: string | null;
  ownershipPercent: number | null;
  address: AddressFacts | null;
  version: number;
  organization: {
    name: string;
    slug: string;
    email: string | null;
    phone: string | null;
    url: string | null;
    country: string;
    address: AddressFacts | null;
  };
}

export interface AccountState {
  id: string;
  status: string;
  requirements: string[];
}

export interface PersonState {
  id: string;
  status: string;
  requirements: string[];
}

/** An event of the processor: it says which object to look at. */
export interface ProcessorEvent {
  id: string;
  type: string;
  /** Seconds since 1970. */
  created: number;
  /** The payment or account that it is about; null for others. */
  objectId: string | null;
  accountId: string | null;
}

/** The processor, or the bank behind the card, does not do what was asked, and will not if asked again. */
export class ProcessorRefusal extends Error {
  readonly code: string;
  /** The parameter that it is about, in the processor's words. */
  readonly param: string | undefined;
  /** Whether it is the card that was refused. */
  readonly isCard: boolean;

  constructor(message: string, code: string, param: string | undefined, isCard: boolean, cause: unknown) {
    super(message, { cause });
    this.name = "ProcessorRefusal";
    this.code = code;
    this.param = param;
    this.isCard = isCard;
  }
}

/** Nobody knows whether the processor did what was asked: it could not be reached, or failed. */
export class ProcessorFailure extends Error {
  readonly retryable: boolean;

  constructor(message: string, retryable: boolean, cause: unknown) {
    super(message, { cause });
    this.name = "ProcessorFailure";
    this.retryable = retryable;
  }
}

/**
 * Everything that changes something takes a key: asked again under it, the processor gives the first answer.
 * @throws ProcessorRefusal, ProcessorFailure
 */
export interface PaymentProcessor {
  /** As error messages and `extensions.provider` call it. */
  readonly name: string;
  /** Whether payments are real: false for a sandbox. */
  readonly takesMoney: boolean;
  createCustomer(user: { userId: string; email: string | null; name: string | null }): Promise<string>;
  /** Makes a card of a token and gives it to the customer. */
  addCard(of: {
    customerId: string;
    token: string;
    holderName: string | null;
    /** Of the attempt, where it may be repeated. */
    key: string | null;
  }): Promise<Card>;
  removeCard(cardId: string): Promise<void>;

  /** Makes the payment, unconfirmed: no money moves. */
  createPayment(payment: PaymentFacts): Promise<PaymentState>;
  /** Charges the card of the payment. A card that is refused is a state, no error. */
  confirmPayment(payment: PaymentFacts & { processorId: string }): Promise<PaymentState>;
  readPayment(processorId: string): Promise<PaymentState>;
  /** Gives up what is not paid yet; the state afterwards, whatever it is. */
  cancelPayment(processorId: string): Promise<PaymentState>;
  /** Makes the refund, or finds it where it was made before. */
  refund(refund: RefundFacts): Promise<RefundState>;
  /** Gives in to the payer who contests the charge; once, however often it is asked. */
  acceptDispute(chargeId: string): Promise<void>;

  createAccount(representative: RepresentativeFacts, ip: string | undefined): Promise<AccountState>;
  readAccount(accountId: string): Promise<AccountState & { people: PersonState[] }>;
  /** Tells of the representative: for the first time, or what changed. */
  tellPerson(accountId: string, representative: RepresentativeFacts): Promise<PersonState>;
  removePerson(accountId: string, personId: string): Promise<void>;
  /** Closes the account for good; once, however often it is asked. A ProcessorRefusal where money is still on it. */
  closeAccount(accountId: string): Promise<void>;

  /** What a delivery says, if the signature is the processor's; undefined otherwise. */
  readEvent(body: Buffer, signature: string | undefined): ProcessorEvent | undefined;
  /** The events since then, oldest first. */
  eventsSince(seconds: number): Promise<ProcessorEvent[]>;
}
