import { CodedError } from "../base/errors.ts";

/** Twelve to nineteen digits, however they are grouped. */
const digits = /\d(?:[ .-]?\d){11,18}/g;

function isLuhn(number: string): boolean {
  let sum = 0;
  for (const [index, digit] of [...number].reverse().entries()) {
    const value = Number(digit) * (index % 2 === 0 ? 1 : 2);
    sum += value > 9 ? value - 9 : value;
  }
  return sum % 10 === 0;
}

/** Whether the text may contain a card number. */
export function hasCardNumber(text: string): boolean {
  return (text.match(digits) ?? []).some((found) => isLuhn(found.replace(/\D/g, "")));
}

/**
 * Refuses anything that looks like a card number, in any field, before it is processed.
 * @throws CodedError which does not repeat it
 */
export function refuseCardNumbers(input: Record<string, unknown>): void {
  for (const [field, value] of Object.entries(input))
    if (typeof value === "string" && !field.endsWith("Id") && hasCardNumber(value))
      throw new CodedError(
        "BAD_USER_INPUT",
        "This looks like a card number, which must not be sent here. Send the token that the client library of the payment processor creates.",
        { field },
      );
}
