import diagnostics from "node:diagnostics_channel";

const channel = diagnostics.channel("plat:sql-statement");

/** Announces one statement of a caller that goes to the server; costs next to nothing while nobody listens. */
export function announceStatement(text: string, values: readonly unknown[] = []): void {
  if (channel.hasSubscribers) channel.publish({ text, values });
}

/**
 * Calls `listener` with the text and the values of every statement that a GraphQL step sends from now on, in this process.
 * Settings, BEGIN, COMMIT and savepoints are the transport's business and not told; a retried statement is told
 * again, since the server runs it again.
 *
 * @returns a function that ends the listening.
 */
export function onStatement(listener: (text: string, values: readonly unknown[]) => void): () => void {
  const subscriber = (message: unknown): void => {
    const { text, values } = message as { text: string; values: readonly unknown[] };
    listener(text, values);
  };
  channel.subscribe(subscriber);
  return () => void channel.unsubscribe(subscriber);
}
