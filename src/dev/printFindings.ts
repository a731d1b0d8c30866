/** Prints the findings of the schema checks after each save: what was forgotten, and what to write. */
import { checkCatalog, prepareChecks } from "../checks/checkCatalog.ts";
import { sourceWords } from "../checks/sources.ts";
import { onConnection } from "../database/onConnection.ts";

/** Maximum number of findings in a report. */
const most = 10;

/**
 * @param ownerUrl the database that follows the files
 * @param say prints a sentence
 * @returns a function that runs the checks again and prints each finding once while it persists
 */
export function printFindings(ownerUrl: string, say: (text: string) => void): () => Promise<void> {
  let printed = new Set<string>();
  return async () => {
    const found = await onConnection(ownerUrl, async (client) => {
      await prepareChecks(client);
      return await checkCatalog(client, await sourceWords());
    });
    const sentences = found.map(({ rule, object, write }) => `${rule}: ${object}: ${write}`);
    const news = sentences.filter((sentence) => !printed.has(sentence));
    printed = new Set(sentences);
    for (const sentence of news.slice(0, most)) say(sentence);
    if (news.length > most) say(`… and ${news.length - most} more: npm run check:schema`);
  };
}
