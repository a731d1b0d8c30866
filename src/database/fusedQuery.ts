import { EventEmitter } from "node:events";
import pg, { DatabaseError, type Submittable } from "pg";
import { closesConnection, DatabaseConnectionError } from "./databaseErrors.ts";
import type { ColumnParser, PreparedStatement, ResultShape } from "./statementCache.ts";
import { WireMessages, type WireValue } from "./wireMessages.ts";

/** One statement of a batch; without `prepared` it is sent as the unnamed statement. */
export interface Step {
  readonly text: string;
  /** Parameters in wire form, see {@link toWire}. */
  readonly values: readonly WireValue[];
  readonly prepared: PreparedStatement | null;
}

/** Rows and count of the last statement of a batch. */
export interface BatchResult {
  readonly rows: unknown[];
  readonly rowCount: number | null;
  /** First word of the server's command tag, such as SELECT, COMMIT, ROLLBACK. */
  readonly command: string | null;
  /** Last column of the row of the last but one statement, as text. */
  readonly before: string | null;
}

/** The part of node-postgres' connection that custom queries may use. */
interface Wire extends EventEmitter {
  readonly stream: EventEmitter & {
    readonly writable: boolean;
    write(bytes: Buffer): boolean;
    destroy(): void;
  };
  sendCopyFail(message: string): void;
}

interface FieldDescription {
  readonly name: string;
  readonly dataTypeID: number;
}

/** Counts received bytes; returns the error to fail with if there are too many. */
export type Meter = (bytes: number) => Error | undefined;

const NO_COLUMNS: ResultShape = { names: [], parsers: [] };

const { prepareValue } = (pg as unknown as { utils: { prepareValue(value: unknown): WireValue } }).utils;

/** The batch that is being encoded: batches are written one after the other. */
const messages = new WireMessages();

/** Converts parameters to wire format, before anything is sent: a value that throws must not leave half a batch. */
export function toWire(values: readonly unknown[] | undefined): readonly WireValue[] {
  return values === undefined
    ? []
    : values.map((value) => (typeof value === "string" ? value : prepareValue(value)));
}

/**
 * Several statements in one write and one round trip, ended by a single Sync. Outside of BEGIN they are one implicit
 * transaction: when one fails the server skips the others and rolls everything back; the commit happens at the Sync.
 *
 * A query object for `client.query` of node-postgres. It has no `name`, so that the driver books no prepared
 * statement on it. States: sent → rows of step n … → complete or failed → ReadyForQuery, where alone it settles
 * (errors of deferred constraints come after the last row); a lost connection settles it at once.
 */
export class FusedQuery implements Submittable {
  readonly result: Promise<BatchResult>;
  readonly #steps: readonly Step[];
  readonly #closing: readonly string[];
  readonly #arrayMode: boolean;
  readonly #parserFor: (type: number) => ColumnParser;
  readonly #meter: Meter | undefined;
  readonly #behind: FusedQuery | undefined;
  #isSent = false;
  #before: string | null = null;
  readonly #outcome = Promise.withResolvers<BatchResult>();
  readonly #rows: unknown[] = [];
  #position = 0;
  #shape: ResultShape | null = null;
  #tag = "";
  #failure: unknown = null;
  #cut = false;
  #stopMeter = (): void => {};

  constructor(
    steps: readonly Step[],
    options: {
      closing: readonly string[];
      arrayMode: boolean;
      parserFor: (type: number) => ColumnParser;
      meter?: Meter | undefined;
      /**
       * A batch sent in the same write, which runs regardless of the outcome of this one; it must be the next query
       * of the connection.
       */
      behind?: FusedQuery | undefined;
    },
  ) {
    this.#steps = steps;
    this.#closing = options.closing;
    this.#arrayMode = options.arrayMode;
    this.#parserFor = options.parserFor;
    this.#meter = options.meter;
    this.#behind = options.behind;
    this.result = this.#outcome.promise;
  }

  /** The statement that the others precede. */
  get text(): string {
    return this.#steps.at(-1)!.text;
  }

  /** Whether the connection was abandoned in the middle of a response. */
  get isCut(): boolean {
    return this.#cut;
  }

  submit(connection: unknown): void {
    const wire = connection as Wire;
    this.#measure(wire);
    if (this.#isSent) return;
    try {
      this.#write();
      if (this.#behind) this.#behind.#write();
    } catch (error) {
      messages.clear();
      throw error;
    }
    const bytes = messages.take();
    if (wire.stream.writable) wire.stream.write(bytes);
  }

  #write(): void {
    this.#isSent = true;
    for (const name of this.#closing) messages.close(name);
    const last = this.#steps.length - 1;
    for (let index = 0; index <= last; index += 1) {
      const { text, values, prepared } = this.#steps[index]!;
      const statement = prepared?.name ?? "";
      if (!prepared?.ready) messages.parse(statement, text);
      messages.bind(statement, values);
      if (index === last) {
        this.#shape = prepared?.ready ? prepared.shape : null;
        if (this.#shape === null) messages.describe();
      }
      messages.execute();
    }
    messages.sync();
  }

  handleRowDescription(message: { fields: readonly FieldDescription[] }): void {
    this.#shape = {
      names: message.fields.map((field) => field.name),
      parsers: message.fields.map((field) => this.#parserFor(field.dataTypeID)),
    };
  }

  handleDataRow(message: { fields: readonly (string | null)[] }): void {
    if (this.#failure !== null) return;
    // Rows of earlier steps were never described.
    if (this.#position < this.#steps.length - 1) {
      if (this.#position === this.#steps.length - 2) this.#before = message.fields.at(-1) ?? null;
      return;
    }
    try {
      this.#rows.push(this.#arrayMode ? this.#asArray(message.fields) : this.#asObject(message.fields));
    } catch (error) {
      // A parser's exception must not reach the driver's socket reader.
      this.#failure = error;
    }
  }

  handleCommandComplete(message: { text: string }): void {
    const prepared = this.#steps[this.#position]?.prepared;
    if (prepared) prepared.ready = true;
    if (prepared && this.#position === this.#steps.length - 1) prepared.shape = this.#shape ?? NO_COLUMNS;
    this.#tag = message.text;
    this.#position += 1;
  }

  handleEmptyQuery(): void {
    this.handleCommandComplete({ text: "" });
  }

  handleError(error: Error, connection: unknown): void {
    if (this.#cut) return this.#settle();
    this.#failure = error;
    if (!(error instanceof DatabaseError)) this.#failure = new DatabaseConnectionError("08006", error);
    if (closesConnection(this.#failure)) return this.#settle();
    // The driver drops a query at its error; the transaction has only ended, and the next batch can only be sent, at
    // ReadyForQuery.
    const wire = connection as Wire;
    const settle = (): void => {
      wire.off("readyForQuery", settle);
      wire.off("end", settle);
      this.#settle();
    };
    wire.on("readyForQuery", settle);
    wire.on("end", settle);
  }

  handleReadyForQuery(): void {
    this.#settle();
  }

  handlePortalSuspended(): void {
    // Execute requests all rows, so no portal is ever suspended.
  }

  handleCopyInResponse(connection: unknown): void {
    (connection as Wire).sendCopyFail("COPY FROM STDIN is not possible here");
  }

  handleCopyData(): void {
    // COPY TO STDOUT has no rows for a GraphQL step.
  }

  /**
   * Bytes are counted as they arrive, since a row, which can contain entire lists, is only available when complete.
   * The rest of a result cannot be skipped, and waiting for it takes as long as reading it: the connection is closed.
   */
  #measure(wire: Wire): void {
    const meter = this.#meter;
    if (!meter) return;
    const count = (chunk: Uint8Array): void => {
      const over = meter(chunk.length);
      if (!over) return;
      this.#failure = over;
      this.#cut = true;
      this.#stopMeter();
      wire.stream.destroy();
    };
    // Before the driver, which may find the end of the result in the same chunk.
    wire.stream.prependListener("data", count);
    this.#stopMeter = () => void wire.stream.off("data", count);
  }

  #asArray(fields: readonly (string | null)[]): unknown[] {
    const parsers = this.#shape?.parsers ?? [];
    return fields.map((text, index) => (text === null ? null : parsers[index]!(text)));
  }

  #asObject(fields: readonly (string | null)[]): Record<string, unknown> {
    const { names, parsers } = this.#shape ?? NO_COLUMNS;
    return Object.fromEntries(
      fields.map((text, index) => [names[index], text === null ? null : parsers[index]!(text)]),
    );
  }

  #settle(): void {
    this.#stopMeter();
    if (this.#failure !== null) return this.#outcome.reject(this.#failure);
    const [command = "", ...counts] = this.#tag.split(" ");
    const count = counts.at(-1);
    const rowCount = count !== undefined && /^\d+$/.test(count) ? Number(count) : null;
    this.#outcome.resolve({ rows: this.#rows, rowCount, command: command || null, before: this.#before });
  }
}
