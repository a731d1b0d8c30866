/** One-time codes of signers, on their way to SQL. */
import { CodedError, type ErrorCode } from "../errors.ts";
import type { ArgumentTransform } from "../operations/members.ts";

interface Tried {
  proof?: string;
  code?: ErrorCode;
  message?: string;
  triesLeft?: number;
  retryAfterSeconds?: number;
}

const longest = 100;

/**
 * `@transform proveSigningCode`: a right code becomes a proof that the operation uses up. A try counts in a transaction of its own, so
 * that a wrong code is counted though its operation is undone.
 * @throws {CodedError} BAD_USER_INPUT with triesLeft for a wrong code; RATE_LIMITED after too many
 */
export const proveSigningCode: ArgumentTransform = async (value, { member, input, context }) => {
  const { withPgClient, pgSettings } = context as any;
  const { rows } = await withPgClient(pgSettings, (client: any) =>
    client.query({
      text: "select app_hidden.try_signing_code(app_hidden.record_id('agreement_signers', $1, 'signerId'), $2, $3) as tried",
      values: [input.signerId ?? null, input.token ?? null, String(value).slice(0, longest)],
    }),
  );
  const { proof, code, message, ...facts } = rows[0].tried as Tried;
  if (proof === undefined) throw new CodedError(code!, message!, { field: member, ...facts });
  return proof;
};
