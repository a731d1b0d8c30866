import { CodedError } from "../base/errors.ts";
import { LARGE_INPUT } from "./semaphores.ts";
import { eventLoop } from "./eventLoop.ts";
import type { Release } from "./fairSemaphore.ts";
import type { Party } from "./party.ts";
import { queryLimits } from "./queryLimits.ts";

/** The SQLSTATE of the notice of app_hidden.claim_answer that a field has the answer that was kept. */
const REPLAYED = "PLAT3";

/** A statement as @dataplan/pg asks for it. */
export interface AskedStatement {
  readonly text: string;
  readonly values?: readonly unknown[] | undefined;
  readonly name?: string | undefined;
}

/** Is told what an operation has asked of the database, and the rows that came. */
export interface StatementRecorder {
  ran(statement: AskedStatement, rows: readonly unknown[]): void;
}

/** The one transaction of an operation that is undone, or judged before it is committed; see src/database/operationTransaction.ts. */
export interface HeldTransaction {
  /** Whether it is undone in any case. */
  readonly isDry: boolean;
}

/** What one operation takes while it is answered. */
export class OperationWork {
  readonly party: Party;
  /** Whether reading its values is long for the event loop; see LARGE_INPUT. */
  readonly hasLargeInput: boolean;
  /** Bytes that the database has sent for it. */
  bytesRead = 0;
  /** Set by {@link measured}. */
  cost = 0;
  #bytesAllowed: number = queryLimits.bytes;
  #part: readonly string[] = [];
  /** Whether its answer is the schema, or a part of it, and nothing else. */
  tellsSchema = false;
  /** Whether a field was answered by what was kept under its idempotency key; see src/operations/idempotency.ts. */
  isReplayed = false;
  /** What its plan does, where that is recorded. */
  recording: StatementRecorder | undefined;
  #failure: { readonly error: unknown } | undefined;
  readonly #releases: Release[] = [];
  /** Of the database's log, what its data have to reach at least. */
  notBefore: string | undefined;
  /** How far its data reach; undefined where nothing was read. */
  position: bigint | undefined;
  /** Whether it is a mutation. */
  changes = false;
  /** In which all of its statements run, where it is not kept as it comes. */
  heldTransaction: HeldTransaction | undefined;
  #isCommitted = false;

  /** @param inputBytes of the body that the operation came with */
  constructor(party: Party, inputBytes = 0) {
    this.party = party;
    this.hasLargeInput = inputBytes >= LARGE_INPUT;
  }

  /** Where there is much to read, what follows is a piece of work of its own, and others are served before it. */
  async nextPiece(): Promise<void> {
    if (this.hasLargeInput) await eventLoop.ready(this.party);
  }

  /**
   * Tells what is expected.
   * @param copies how often the answer can repeat what is read once
   * @param changes whether it is a mutation
   */
  measured(cost: number, part: readonly string[], copies: number, changes = false): void {
    this.cost = cost;
    this.changes = changes;
    this.#part = part;
    this.#bytesAllowed = changes ? queryLimits.changedBytes : queryLimits.bytes / copies;
  }

  /**
   * Counts what the database sends.
   * @returns the refusal as soon as it is too much
   */
  read(bytes: number): CodedError | undefined {
    this.bytesRead += bytes;
    return this.bytesRead > this.#bytesAllowed ? this.tooLarge() : undefined;
  }

  /** Takes note of a notice that the database has raised for it. */
  noticed(code: string | undefined): void {
    this.isReplayed ||= code === REPLAYED;
  }

  /** Tells up to which place in the log one of its statements saw everything: the answer reaches as far as all of them. */
  reached(lsn: bigint): void {
    if (!this.#isCommitted && (this.position === undefined || lsn < this.position)) this.position = lsn;
  }

  /** Tells a place in the log behind a commit of its own. */
  committed(lsn: bigint): void {
    if (!this.#isCommitted || lsn > this.position!) this.position = lsn;
    this.#isCommitted = true;
  }

  /** Its statement was sent, and failed: the plan, which tells of errors, is told this in place of sending it again. */
  failed(error: unknown): void {
    this.bytesRead = 0;
    this.#failure = { error };
  }

  /** @throws what the first statement has failed with already, once */
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

  /** Has what was acquired for the operation released when its answer is out of hand. */
  holds(release: Release): void {
    this.#releases.push(release);
  }

  end(): void {
    for (const release of this.#releases.splice(0)) release();
  }
}

const work = Symbol("work");

/** Settings for the database that know for which operation they are. */
export function withWork<T extends Record<string, string | undefined>>(
  settings: T,
  of: OperationWork | undefined,
): T {
  return of ? Object.assign(settings, { [work]: of }) : settings;
}

/** The operation that settings are for; undefined for the service's own statements. */
export function workOf(settings: object | null | undefined): OperationWork | undefined {
  return (settings as { [work]?: OperationWork } | null | undefined)?.[work];
}
