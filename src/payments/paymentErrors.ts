import { CodedError } from "../base/errors.ts";
import { ProcessorFailure, ProcessorRefusal } from "../providers/payments/index.ts";

/** Members of the API that parameters of the processor stand for. */
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
 * What the caller is told of a failure at the processor. One that nobody knows the outcome of says that it is found out.
 * @param subject the member that a refused card was named by
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
