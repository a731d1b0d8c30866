import { CodedError } from "../base/errors.ts";
import { LARGE_INPUT } from "./semaphores.ts";
import { eventLoop } from "./eventLoop.ts";
import type { Release } from "./fairSemaphore.ts";
import type { Party } from "./party.ts";
import { queryLimits } from "./queryLimits.ts";

/** SQLSTATE of the notice of app_hidden.claim_answer that a field has a stored response. */
const REPLAYED = "PLAT3";

/** A statement as @dataplan/pg passes it. */
export interface SentStatement {
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
  readonly name?: string | undefined;
}

/** WAL position of the primary. */
export interface PrimaryPosition {
  readonly lsn: string;
  readonly timeline: number;
}

/** Receives the statements of an operation and their rows. */
export interface StatementRecorder {
  ran(statement: SentStatement, rows: readonly unknown[]): void;
}

/** Receives the statements of an operation for a viewer who may read them; see src/database/statementTrace.ts. */
export interface StatementTrace {
  ran(statement: { text: string; values: readonly unknown[]; ms: number; rows: number | null }): void;
}

/**
 * The single transaction of an operation that is rolled back, or reviewed before the commit; see
 * src/database/operationTransaction.ts.
 */
export interface HeldTransaction {
  /** Whether it is rolled back in any case. */
  readonly isDry: boolean;
}

/** Resource usage of one operation while it is answered. */
export class OperationWork {
  readonly party: Party;
  /** Whether reading its variables is CPU-heavy; see LARGE_INPUT. */
  readonly hasLargeInput: boolean;
  /** Bytes received from the database for it. */
  bytesRead = 0;
  /** Set by {@link measured}. */
  cost = 0;
  #bytesAllowed: number = queryLimits.bytes;
  #part: readonly string[] = [];
  /** Whether its response consists only of the schema or parts of it. */
  tellsSchema = false;
  /**
   * Whether a field was answered with a stored response of its idempotency key; see src/operations/idempotency.ts.
   */
  isReplayed = false;
  /** Recording of its plan's work, if enabled. */
  recording: StatementRecorder | undefined;
  /** Trace of its statements, if the viewer has asked for it. */
  trace: StatementTrace | undefined;
  #failure: { readonly error: unknown } | undefined;
  readonly #releases: Release[] = [];
  /** Minimum WAL position of its data. */
  notBefore: string | undefined;
  /** WAL position of its data; undefined if nothing was read. */
  position: bigint | undefined;
  /** Whether it is a mutation. */
  changes = false;
  /** Whether it is a query, which a read replica may answer. */
  isQuery = false;
  /** Whether a replica could not answer one of its statements: the primary answers the rest. */
  needsPrimary = false;
  /** WAL position of the primary after the operation began, if replicas are used. */
  primaryPosition: Promise<PrimaryPosition | undefined> | undefined;
  /** Transaction for all of its statements, if they are not committed one by one. */
  heldTransaction: HeldTransaction | undefined;
  #isCommitted = false;

  /** @param inputBytes size of the request body */
  constructor(party: Party, inputBytes = 0) {
    this.party = party;
    this.hasLargeInput = inputBytes >= LARGE_INPUT;
  }

  /** If there is much to read, processing it is a separate piece of work, and others are served before it. */
  async nextPiece(): Promise<void> {
    if (this.hasLargeInput) await eventLoop.ready(this.party);
  }

  /**
   * Sets the expected size of the response.
   * @param copies how often the response can repeat a value that is read once
   * @param changes whether it is a mutation
   */
  measured(cost: number, part: readonly string[], copies: number, changes = false): void {
    this.cost = cost;
    this.changes = changes;
    this.#part = part;
    this.#bytesAllowed = changes ? queryLimits.changedBytes : queryLimits.bytes / copies;
  }

  /**
   * Counts received bytes.
   * @returns a refusal once the limit is exceeded
   */
  read(bytes: number): CodedError | undefined {
    this.bytesRead += bytes;
    return this.bytesRead > this.#bytesAllowed ? this.tooLarge() : undefined;
  }

  /** Handles a notice of the database. */
  noticed(code: string | undefined): void {
    this.isReplayed ||= code === REPLAYED;
  }

  /** Records the WAL position of one statement: the response's position is the minimum of all. */
  reached(lsn: bigint): void {
    if (!this.#isCommitted && (this.position === undefined || lsn < this.position)) this.position = lsn;
  }

  /** Records the WAL position after a commit of its own. */
  committed(lsn: bigint): void {
    if (!this.#isCommitted || lsn > this.position!) this.position = lsn;
    this.#isCommitted = true;
  }

  /** Its statement was sent and failed: the plan, which reports errors, gets this one instead of sending it again. */
  failed(error: unknown): void {
    this.bytesRead = 0;
    this.#failure = { error };
  }

  /** @throws the error of the first statement, once */
  throwFailure(): void {
    const failure = this.#failure;
    if (!failure) return;
    this.#failure = undefined;
    throw failure.error;
  }

  tooLarge(done = false): CodedError {
    const part = this.#part.join(".");
    const subject = done ? "The operation was carried out, but its answer" : "The answer";
    const message = `${subject} is over ${queryLimits.bytes / 1_000_000} MB${part && `, most of it probably in ${part}`}. Ask for fewer records with first, or for fewer fields, and for the rest in further requests.`;
    return new CodedError("LIMIT_EXCEEDED", message, { limit: queryLimits.bytes, ...(part && { part }) });
  }

  /** Keeps acquired resources until the response has been sent. */
  holds(release: Release): void {
    this.#releases.push(release);
  }

  end(): void {
    for (const release of this.#releases.splice(0)) release();
  }
}

const work = Symbol("work");

/** Settings for the database that are linked to their operation. */
export function withWork<T extends Record<string, string | undefined>>(
  settings: T,
  of: OperationWork | undefined,
): T {
  return of ? Object.assign(settings, { [work]: of }) : settings;
}

/** The operation of settings; undefined for internal statements. */
export function workOf(settings: object | null | undefined): OperationWork | undefined {
  return (settings as { [work]?: OperationWork } | null | undefined)?.[work];
}
