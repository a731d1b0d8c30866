/** Mutants that change nothing that anybody could see, each with the reason why. */
export const equivalents: { pattern: RegExp; reason: string }[] = [];
