/** The interface of payment processors. Amounts are decimals as strings, statuses those of the API. */

/** A card as stored by the processor. */
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

/** A payment begun in the database; see app_private.payment_facts. */
export interface PaymentFacts {
  id: string;
  processorId: string | null;
  status: string;
  /** Whether it can still be completed. */
  open: boolean;
  /** Whether it is confirmed immediately, with the card. */
  confirm: boolean;
  amount: string;
  currency: string;
  description: string | null;
  customerId: string | null;
  cardId: string | null;
  accountId: string | null;
  metadata: Record<string, string>;
}

/** The state of a payment; accepted by app_private.note_payment. */
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

/** A refund begun in the database; see app_private.refund_facts. */
export interface RefundFacts {
  id: string;
  chargeId: string;
  processorId: string | null;
  processorChargeId: string;
  amount: string;
  currency: string;
  reason: string;
  open: boolean;
  /** Whether it was begun just now, so that it cannot exist at the processor yet. */
  isNew?: boolean;
  /** Whether the money was transferred to the account of an organization, from which it is refunded. */
  toAccount: boolean;
}

export interface RefundState {
  id: string;
  amount: string;
  status: string;
  reason: string;
  failureMessage: string | null;
  /** Our id of it, if the service created it. */
  ours: string | null;
}

/** The fields of an address, as in the database. */
export type AddressFacts = Partial<
  Record<
    "thoroughfare" | "premise" | "locality" | "administrative_area" | "postal_code" | "country",
    string | null
  >
>;

/** A representative begun in the database; see app_private.representative_facts. */
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

/** An event of the processor: it only says which object to read. */
export interface ProcessorEvent {
  id: string;
  type: string;
  /** Seconds since 1970. */
  created: number;
  /** The payment or account that it concerns; null for others. */
  objectId: string | null;
  accountId: string | null;
}

/** The processor, or the bank of the card, refuses permanently. */
export class ProcessorRefusal extends Error {
  readonly code: string;
  /** The parameter that it concerns, in the processor's terms. */
  readonly param: string | undefined;
  /** Whether the card was refused. */
  readonly isCard: boolean;

  constructor(message: string, code: string, param: string | undefined, isCard: boolean, cause: unknown) {
    super(message, { cause });
    this.name = "ProcessorRefusal";
    this.code = code;
    this.param = param;
    this.isCard = isCard;
  }
}

/** The outcome is unknown: the processor was unreachable, or failed. */
export class ProcessorFailure extends Error {
  readonly retryable: boolean;

  constructor(message: string, retryable: boolean, cause: unknown) {
    super(message, { cause });
    this.name = "ProcessorFailure";
    this.retryable = retryable;
  }
}

/**
 * All changes take an idempotency key: repeated with it, the processor returns the first response.
 * @throws ProcessorRefusal, ProcessorFailure
 */
export interface PaymentProcessor {
  /** Its name in error messages and `extensions.provider`. */
  readonly name: string;
  /** Whether payments are real: false for a sandbox. */
  readonly takesMoney: boolean;
  createCustomer(user: { userId: string; email: string | null; name: string | null }): Promise<string>;
  /** Creates a card from a token and attaches it to the customer. */
  addCard(of: {
    customerId: string;
    token: string;
    holderName: string | null;
    /** Key of the attempt, if it may be repeated. */
    key: string | null;
  }): Promise<Card>;
  removeCard(cardId: string): Promise<void>;

  /** Creates the payment, unconfirmed: no money moves. */
  createPayment(payment: PaymentFacts): Promise<PaymentState>;
  /** Charges the card of the payment. A declined card is a state, not an error. */
  confirmPayment(payment: PaymentFacts & { processorId: string }): Promise<PaymentState>;
  readPayment(processorId: string): Promise<PaymentState>;
  /** Cancels an unpaid payment; returns the state afterwards, whatever it is. */
  cancelPayment(processorId: string): Promise<PaymentState>;
  /** Creates the refund, or finds an existing one. */
  refund(refund: RefundFacts): Promise<RefundState>;
  /** Accepts the dispute; idempotent. */
  acceptDispute(chargeId: string): Promise<void>;

  createAccount(representative: RepresentativeFacts, ip: string | undefined): Promise<AccountState>;
  readAccount(accountId: string): Promise<AccountState & { people: PersonState[] }>;
  /** Creates or updates the representative. */
  submitPerson(accountId: string, representative: RepresentativeFacts): Promise<PersonState>;
  removePerson(accountId: string, personId: string): Promise<void>;
  /** Closes the account permanently; idempotent. Throws a ProcessorRefusal while it has a balance. */
  closeAccount(accountId: string): Promise<void>;

  /** The event of a delivery if the signature is valid; undefined otherwise. */
  readEvent(body: Buffer, signature: string | undefined): ProcessorEvent | undefined;
  /** The events since then, oldest first. */
  eventsSince(seconds: number): Promise<ProcessorEvent[]>;
}
