/** Words that several plugins derive from type names. */

/** `LeadSource` → `lead source`. */
export const nounOf = (typeName: string): string =>
  typeName.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** `LeadSource` → `a lead source`. */
export const withArticle = (typeName: string): string => {
  const noun = nounOf(typeName);
  return `${/^(?:[aeio]|u(?!ser|ni))/.test(noun) ? "an" : "a"} ${noun}`;
};

/** The first sentence of a comment, to continue after a colon: `A home for sale.` → `a home for sale`. */
export function clauseOf(comment: string | undefined): string | undefined {
  const sentence = /^[^.]*/.exec(comment ?? "")?.[0];
  return sentence ? sentence[0]!.toLowerCase() + sentence.slice(1) : undefined;
}

const stem = (word: string): string => word.replace(/s$/, "");
const wordsOf = (text: string): string[] => (text.match(/\w+/g) ?? []).map(stem);

/**
 * A record with its description: `a lot: a piece of land`. A clause that only repeats the noun is omitted (`a document of a project`), and
 * one that begins with the noun replaces it (`an appointment with a lead or buyer`).
 */
export function introduced(noun: string, clause: string | undefined): string {
  const known = new Set([...wordsOf(noun), ...wordsOf("a an of the")]);
  if (!clause || wordsOf(clause).every((word) => known.has(word))) return noun;
  return clause.startsWith(`${noun} `) ? clause : `${noun}: ${clause}`;
}
