import { createHash } from "node:crypto";
import { crc32 } from "node:zlib";

/** Prefix of every access token. Login tokens (JWT) never start with it. */
export const accessTokenPrefix = "plat_";

const alphabet = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz";
const form = /^(plat_[0-9A-Za-z]{32})([0-9A-Za-z]{6})$/;

/**
 * Whether this can be an access token: its format, and the checksum in its last six characters. Detects a mistyped
 * token without a query; app_private.token_checksum computes the same.
 */
export function isAccessToken(token: string): boolean {
  const match = form.exec(token);
  return match !== null && checksum(match[1]!) === match[2];
}

/** The hash of an access token that the database stores. */
export function accessTokenSha256(token: string): Buffer {
  return createHash("sha256").update(token).digest();
}

/** CRC-32 in base 62, six characters. */
function checksum(body: string): string {
  let rest = crc32(body);
  let result = "";
  for (let digit = 0; digit < 6; digit++) {
    result = alphabet[rest % 62] + result;
    rest = Math.floor(rest / 62);
  }
  return result;
}
