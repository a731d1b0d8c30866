import { createHash } from "node:crypto";
import type { ArgumentTransform } from "../inputFields.ts";
import { secretOfSecondFactor, type Seal } from "../../secrets/seal.ts";
import { isPasswordVerified, type TransformContext } from "./passwords.ts";
import { newTotpSecret, stepOfCode } from "../../auth/totp.ts";

/** Matches no account. */
const WRONG = "wrong";

const appCode = /^\d{6}$/;
/** Crockford's base 32: o is read as 0, and i or l as 1. */
const recoveryCode = /^[0-9a-hjkmnp-tv-z]{16}$/;

const sha256 = (text: string) => createHash("sha256").update(text).digest("hex");

/**
 * `@transform proveSecondFactor`: converts a code to a proof for SQL. For an authenticator app: the time step, with
 * the hash of the sealed secret; for a recovery code: its SHA-256. SQL accepts each once, and knows whether the
 * account has a second factor. A wrong code is counted in a transaction of its own, and only if the password was
 * correct: otherwise nothing is revealed, not even by timing.
 * @throws {CodedError} RATE_LIMITED
 */
export const proveSecondFactor =
  (seal: Seal) =>
  async (value: string, { pool, claims, operation, input }: TransformContext): Promise<string> => {
    const takesPassword =
      "currentPassword" in input || ("password" in input && operation !== "resetPassword");
    if (takesPassword && !isPasswordVerified(input)) return WRONG;
    const [way, who] =
      operation === "login"
        ? ["LOGIN", String(input.username)]
        : operation === "resetPassword"
          ? ["RESET", String(input.token)]
          : ["VIEWER", claims.userId];
    // SQL refuses visitors.
    if (who === null) return WRONG;
    const { rows } = await pool.query<{ user_id: string; sealed: string }>(
      "select * from app_private.begin_second_factor($1, $2)",
      [way, who],
    );
    const [factor] = rows;
    if (!factor) return WRONG;
    const proof = proofOf(value, seal, factor);
    await pool.query("select app_private.record_second_factor($1, $2, $3)", [way, who, proof]);
    return proof;
  };

function proofOf(value: string, seal: Seal, factor: { user_id: string; sealed: string }): string {
  const code = value.replaceAll(/[\s-]/g, "").toLowerCase();
  if (appCode.test(code)) {
    const step = stepOfCode(seal.open(factor.sealed, secretOfSecondFactor(factor.user_id)), code);
    return step === undefined ? WRONG : `step:${step}:${sha256(factor.sealed)}`;
  }
  const spelled = code.replaceAll("o", "0").replaceAll(/[il]/g, "1");
  return recoveryCode.test(spelled) ? `code:${sha256(spelled)}` : WRONG;
}

/** `@transform freshTotpSecret`: a secret for an authenticator app, and the same sealed for the viewer. */
export const freshTotpSecret =
  (seal: Seal): ArgumentTransform =>
  (_value, { context }) => {
    const { userId } = context.claims;
    // SQL refuses visitors.
    if (userId === null) return {};
    const secret = newTotpSecret();
    return { secret, sealed: seal.seal(secret, secretOfSecondFactor(userId)) };
  };
