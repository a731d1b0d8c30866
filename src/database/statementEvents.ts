import diagnostics from "node:diagnostics_channel";

const channel = diagnostics.channel("plat:sql-statement");

/** Publishes one client statement that is sent to the server; almost free without subscribers. */
export function announceStatement(text: string, values: readonly unknown[] = []): void {
  if (channel.hasSubscribers) channel.publish({ text, values });
}

/**
 * Calls `listener` with the text and values of every statement that a GraphQL step sends from now on, in this
 * process. Settings, BEGIN, COMMIT and savepoints are not published; a retried statement is published again.
 *
 * @returns a function that unsubscribes.
 */
export function onStatement(listener: (text: string, values: readonly unknown[]) => void): () => void {
  const subscriber = (message: unknown): void => {
    const { text, values } = message as { text: string; values: readonly unknown[] };
    listener(text, values);
  };
  channel.subscribe(subscriber);
  return () => void channel.unsubscribe(subscriber);
}
