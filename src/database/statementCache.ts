/** Turns one column's text as the server sends it into a value. */
export type ColumnParser = (text: string) => unknown;

/** What a result looks like, kept with its prepared statement so that it is asked for only once. */
export interface ResultShape {
  readonly names: readonly string[];
  readonly parsers: readonly ColumnParser[];
}

/** One prepared statement of one connection. */
export interface PreparedStatement {
  readonly key: string;
  /** Its name on the wire. Never used a second time on a connection, so that an uncertain one can simply be abandoned. */
  readonly name: string;
  readonly text: string;
  /** True after the statement itself ran through once; a ParseComplete alone says not whose it was. */
  ready: boolean;
  shape: ResultShape | null;
}

/** Texts of all statements of a connection together: the server keeps tens of bytes for each character. */
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

  /** Finds or lists the statement known as `key`; another text under the same key replaces it. */
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

  /** Takes a statement off the list. Closing one that the server does not have is no error, so nothing is asked. */
  forget(statement: PreparedStatement): void {
    if (this.#statements.get(statement.key) === statement) {
      this.#statements.delete(statement.key);
      this.#characters -= statement.text.length;
    }
    this.#closing.push(statement.name);
  }

  /** Hands over the names to close; the caller must send them at the head of its batch. */
  takeClosing(): readonly string[] {
    const names = this.#closing;
    if (names.length > 0) this.#closing = [];
    return names;
  }
}
