/** What of a connection `load` may use: statements of the transaction that is open. */
export interface LoadingClient {
  query<TData>(query: {
    text: string;
    values?: unknown[];
    arrayMode?: boolean;
  }): Promise<{ readonly rows: readonly TData[] }>;
}

/**
 * A value of a statement that is too large to go along with it: `load` brings its content to the database first, piece by
 * piece and in the same transaction, and the statement gets what refers to it.
 */
export abstract class Preloaded {
  /** Called once more, from the beginning, where the transaction has to be repeated. */
  abstract load(client: LoadingClient): Promise<void>;
  /** What the statement gets. */
  abstract toJSON(): unknown;
}
