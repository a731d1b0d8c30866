/** The part of a connection that `load` may use: statements in the open transaction. */
export interface LoadingClient {
  query<TData>(query: {
    text: string;
    values?: unknown[];
    arrayMode?: boolean;
  }): Promise<{ readonly rows: readonly TData[] }>;
}

/**
 * A statement value that is too large to be sent inline: `load` uploads its content first, in chunks and in the same
 * transaction, and the statement gets a reference.
 */
export abstract class Preloaded {
  /** Called again, from the beginning, if the transaction is retried. */
  abstract load(client: LoadingClient): Promise<void>;
  /** The value that the statement gets. */
  abstract toJSON(): unknown;
}
