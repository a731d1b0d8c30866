import { createHash } from "node:crypto";
import { CodedError } from "../../base/errors.ts";
import type { TransformContext } from "./passwords.ts";

const form = /^plat_refresh_[0-9A-Za-z]{43}$/;

/**
 * `@transform proveRefreshToken`: the SHA-256 of a refresh token, in hexadecimal digits. One that comes again ends its session first,
 * in a transaction of its own: the operation that is refused because of that takes nothing back.
 * @throws {CodedError} UNAUTHENTICATED for a text that is no refresh token
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
