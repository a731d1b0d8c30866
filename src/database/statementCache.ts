/** Parses the text form of one column. */
export type ColumnParser = (text: string) => unknown;

/** Result description, kept with its prepared statement so that it is requested only once. */
export interface ResultShape {
  readonly names: readonly string[];
  readonly parsers: readonly ColumnParser[];
}

/** One prepared statement of one connection. */
export interface PreparedStatement {
  readonly key: string;
  /** Its name on the wire. Never reused on a connection, so that an uncertain one can simply be abandoned. */
  readonly name: string;
  readonly text: string;
  /** True once the statement itself has completed; a ParseComplete alone does not say whose it was. */
  ready: boolean;
  shape: ResultShape | null;
}

/** Total text of the statements of a connection: the server keeps tens of bytes per character. */
const MOST_CHARACTERS = 400_000;

/**
 * The prepared statements of one connection, least recently used first.
 *
 * node-postgres keeps such a list too, but books every ParseComplete to the query that is running, which is wrong as
 * soon as one query sends two statements; so the fused queries have no `name` of the driver and are listed here.
 * What falls out of the list is closed by the next batch, which costs no round trip.
 */
export class StatementCache {
  readonly #limit: number;
  #characters = 0;
  readonly #statements = new Map<string, PreparedStatement>();
  #closing: string[] = [];
  #counter = 0;

  /** @param limit statements kept per connection; at least 2, since a batch has a setter and a statement. */
  constructor(limit: number) {
    if (limit < 2) throw new RangeError("A connection must be able to keep two prepared statements");
    this.#limit = limit;
  }

  get size(): number {
    return this.#statements.size;
  }

  /** Finds or adds the statement with this key; another text under the same key replaces it. */
  claim(key: string, text: string): PreparedStatement {
    const known = this.#statements.get(key);
    if (known !== undefined && known.text === text) {
      this.#statements.delete(key);
      this.#statements.set(key, known);
      return known;
    }
    if (known !== undefined) this.forget(known);
    const statement = { key, name: `plat_${++this.#counter}`, text, ready: false, shape: null };
    this.#statements.set(key, statement);
    this.#characters += text.length;
    while (
      this.#statements.size > this.#limit ||
      (this.#characters > MOST_CHARACTERS && this.#statements.size > 2)
    ) {
      const [oldest] = this.#statements.values();
      this.forget(oldest!);
    }
    return statement;
  }

  /**
   * Removes a statement. Closing a statement that the server does not have is not an error, so no check is needed.
   */
  forget(statement: PreparedStatement): void {
    if (this.#statements.get(statement.key) === statement) {
      this.#statements.delete(statement.key);
      this.#characters -= statement.text.length;
    }
    this.#closing.push(statement.name);
  }

  /** Returns the names to close, which the caller must send at the head of its batch. */
  takeClosing(): readonly string[] {
    const names = this.#closing;
    if (names.length > 0) this.#closing = [];
    return names;
  }
}
