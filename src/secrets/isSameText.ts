import { timingSafeEqual } from "node:crypto";

/**
 * Whether two texts are the same, in a time that does not tell where they differ. For signatures: compared as bytes, the
 * last character of Base64 may be another one for the same bytes, and an address would hold in several spellings.
 */
export function isSameText(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
