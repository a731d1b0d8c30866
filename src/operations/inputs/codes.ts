/** One-time codes of signers, on their way to SQL. */
import { CodedError } from "../../base/errors.ts";
import type { ArgumentTransform } from "../inputFields.ts";
import type { DatabaseValue } from "../../database/databaseValue.ts";

/** Result of app_hidden.try_signing_code: a proof, an empty one if no code is open, or the reason for failure. */
export interface TriedCode {
  proof?: string;
  triesLeft?: number;
  retryAfterSeconds?: number;
}

export const longestCode = 100;

/**
 * The proof that a code was exchanged for.
 * @throws {CodedError} BAD_USER_INPUT with triesLeft for a wrong code; RATE_LIMITED after too many
 */
export function proofOf({ proof, triesLeft, retryAfterSeconds }: TriedCode, field: string): string {
  if (proof !== undefined) return proof;
  if (retryAfterSeconds !== undefined)
    throw new CodedError(
      "RATE_LIMITED",
      "Too many wrong codes; try again tomorrow, or ask the sender of the agreement.",
      { field, retryAfterSeconds },
    );
  throw new CodedError("BAD_USER_INPUT", "This code is wrong.", { field, triesLeft });
}

/**
 * `@transform proveSigningCode`: exchanges a correct code for a proof that the mutation uses up. Attempts are counted
 * in a transaction of their own, so that a wrong code counts although its mutation is rolled back.
 * @throws {CodedError} the errors of proofOf
 */
export const proveSigningCode: ArgumentTransform = async (value, { member, input, context }) => {
  const { withPgClient, pgSettings } = context;
  const { rows } = await withPgClient(pgSettings, (client: DatabaseValue) =>
    client.query({
      text: "select app_hidden.try_signing_code(app_hidden.record_id('agreement_signers', $1, 'signerId'), $2, $3) as tried",
      values: [input.signerId ?? null, input.token ?? null, String(value).slice(0, longestCode)],
    }),
  );
  return proofOf(rows[0].tried as TriedCode, member);
};
