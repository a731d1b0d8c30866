/** One-time codes of authenticator apps: RFC 6238 with SHA-1, six digits and 30 seconds, which all apps support. */
import { createHmac, randomBytes, timingSafeEqual } from "node:crypto";

const STEP_SECONDS = 30;
/** Accepted time steps before and after the current one, for clock skew and typing. */
const DRIFT = 1;
/** 160 bits, as RFC 4226 recommends. */
const SECRET_BYTES = 20;

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZ234567";

/** A random secret in base 32, as apps expect it: 32 characters. */
export function newTotpSecret(): string {
  let bits = "";
  for (const byte of randomBytes(SECRET_BYTES)) bits += byte.toString(2).padStart(8, "0");
  return bits.replace(/.{5}/g, (five) => alphabet[parseInt(five, 2)]!);
}

/** The time step of a moment. @param seconds since 1970 */
export const totpStep = (seconds = Date.now() / 1000): number => Math.floor(seconds / STEP_SECONDS);

/** The six digits for a time step. @param secret in base 32 */
export function totpCode(secret: string, step: number): string {
  const counter = Buffer.alloc(8);
  counter.writeBigUInt64BE(BigInt(step));
  const hash = createHmac("sha1", fromBase32(secret)).update(counter).digest();
  const offset = hash.at(-1)! & 15;
  return String((hash.readUInt32BE(offset) & 0x7fff_ffff) % 1_000_000).padStart(6, "0");
}

/**
 * The time step of a code: the current one, or one beside it.
 * @returns undefined for a code of another time or secret
 */
export function stepOfCode(secret: string, code: string, present = totpStep()): number | undefined {
  const given = Buffer.from(code);
  let found: number | undefined;
  // All of them are computed, in constant time.
  for (let step = present - DRIFT; step <= present + DRIFT; step++) {
    const expected = Buffer.from(totpCode(secret, step));
    if (given.length === expected.length && timingSafeEqual(given, expected)) found = step;
  }
  return found;
}

function fromBase32(text: string): Buffer {
  let bits = "";
  for (const letter of text) bits += alphabet.indexOf(letter).toString(2).padStart(5, "0");
  return Buffer.from((bits.match(/.{8}/g) ?? []).map((byte) => parseInt(byte, 2)));
}
