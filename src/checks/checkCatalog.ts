import type { ClientBase } from "pg";
import { createFacts, gatherFacts } from "./catalogFacts.ts";
import { rules } from "./index.ts";
import type { Finding, Rule } from "./rule.ts";
import type { SourceWords } from "./sources.ts";
import { createSnapshot } from "./snapshot.ts";

/**
 * Prepares a connection of the owner for `checkCatalog`; everything it creates is temporary.
 * @param client in a database with the whole chain and the objects
 */
export async function prepareChecks(client: ClientBase): Promise<void> {
  await createSnapshot(client);
  await createFacts(client);
}

/**
 * The findings of the rules in the current database.
 * @param words of the sources that call functions; see sources.ts
 * @param only the rules to apply; by default all of them
 */
export async function checkCatalog(
  client: ClientBase,
  words: SourceWords,
  only: readonly Rule[] = rules,
): Promise<Finding[]> {
  await gatherFacts(client, words);
  const findings: Finding[] = [];
  for (const { name, query } of only) {
    const { rows } = await client.query<{ object: string; write: string }>(query);
    findings.push(...rows.map((row) => ({ rule: name, ...row })).toSorted(byObject));
  }
  return findings;
}

const byObject = (a: Finding, b: Finding) => (a.object < b.object ? -1 : a.object > b.object ? 1 : 0);
