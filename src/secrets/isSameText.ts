import { timingSafeEqual } from "node:crypto";

/**
 * Compares two texts in constant time. For signatures: compared as bytes, the last character of Base64 can differ for the same bytes, so
 * that several spellings of a URL would be valid.
 */
export function isSameText(given: string, wanted: string): boolean {
  const [a, b] = [Buffer.from(given), Buffer.from(wanted)];
  return a.length === b.length && timingSafeEqual(a, b);
}
