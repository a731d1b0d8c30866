/** Which mutants are in a sample. */
import { createHash } from "node:crypto";

const digest = (id: string): Buffer => createHash("sha256").update(id).digest();

/** Whether a mutant is in the sample of one in so many, evenly spread over all files and kinds. */
export const isSampled = (id: string, sampleOf: number): boolean =>
  digest(id).readUInt32BE() % sampleOf === 0;

/** A random order, which is the same in each run: the first few are a random part. */
export const inRandomOrder = <T extends { id: string }>(mutants: readonly T[]): T[] =>
  mutants
    .map((mutant) => ({ mutant, place: digest(mutant.id).readUInt32BE(4) }))
    .toSorted((a, b) => a.place - b.place)
    .map(({ mutant }) => mutant);
