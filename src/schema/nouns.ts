/** Words that several plugins make of a type's name. */

/** `LeadSource` → `lead source`. */
export const nounOf = (typeName: string): string =>
  typeName.replace(/([a-z])([A-Z])/g, "$1 $2").toLowerCase();

/** `LeadSource` → `a lead source`. */
export const aNoun = (typeName: string): string => {
  const noun = nounOf(typeName);
  return `${/^(?:[aeio]|u(?!ser|ni))/.test(noun) ? "an" : "a"} ${noun}`;
};

/** The first sentence of a comment, to go on with after a colon: `A person who may buy.` → `a person who may buy`. */
export function clauseOf(comment: string | undefined): string | undefined {
  const sentence = /^[^.]*/.exec(comment ?? "")?.[0];
  return sentence ? sentence[0]!.toLowerCase() + sentence.slice(1) : undefined;
}
