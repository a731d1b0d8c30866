import { CodedError } from "../base/errors.ts";
import { ProcessorFailure, ProcessorRefusal } from "../providers/payments/index.ts";

/** Fields of the API that correspond to parameters of the processor. */
const fields: Record<string, string> = {
  amount: "amount",
  currency: "currency",
  payment_method: "cardId",
  token: "token",
  "card[token]": "token",
  email: "email",
  phone: "phone",
};
const fieldOf = (param: string | undefined): string | undefined =>
  param === undefined ? undefined : (fields[param] ?? /^(dob|address)\b/.exec(param)?.[1]);

/**
 * The error for the client after a failure at the processor. If the outcome is unknown, it says how to find out.
 * @param subject the field that contained a refused card
 */
export function toCoded(error: unknown, provider: string, subject: string): unknown {
  if (error instanceof ProcessorRefusal) {
    const field = error.isCard ? subject : fieldOf(error.param);
    if (field)
      return new CodedError("BAD_USER_INPUT", error.message, { field, reason: error.code }, { cause: error });
    return new CodedError(
      "PROVIDER_ERROR",
      `The payment processor rejected the request: ${error.message}`,
      { provider, retryable: false, reason: error.code },
      { cause: error },
    );
  }
  if (error instanceof ProcessorFailure)
    return new CodedError(
      "PROVIDER_ERROR",
      error.retryable
        ? "The payment processor does not respond. Retry with the same idempotency key, or check again in a few minutes."
        : "The payment processor does not accept requests from this service at the moment.",
      { provider, retryable: error.retryable },
      { cause: error },
    );
  return error;
}
