import { createHash } from "node:crypto";
import { CodedError } from "../../base/errors.ts";
import type { TransformContext } from "./passwords.ts";

const form = /^plat_refresh_[0-9A-Za-z]{43}$/;

/**
 * `@transform proveRefreshToken`: the SHA-256 of a refresh token, in hexadecimal digits. Reuse ends the session
 * first, in a transaction of its own, so that the refused mutation does not roll it back.
 * @throws {CodedError} UNAUTHENTICATED for a malformed token
 */
export async function proveRefreshToken(
  value: string,
  { pool }: Pick<TransformContext, "pool">,
): Promise<string> {
  const token = value.trim();
  if (!form.test(token)) throw new CodedError("UNAUTHENTICATED", "Not a valid refresh token; sign in again.");
  const sha256 = createHash("sha256").update(token).digest();
  await pool.query("select app_private.begin_refresh($1)", [sha256]);
  return sha256.toString("hex");
}
