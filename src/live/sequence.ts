import { CodedError } from "../base/errors.ts";

const badInput = (message: string, field: string) => new CodedError("BAD_USER_INPUT", message, { field });

/**
 * Parses a sequence number; undefined if none was given.
 * @param head the latest sequence number
 * @throws CodedError BAD_USER_INPUT
 */
export function sequenceOf(text: string | undefined, head: number, field: string): number | undefined {
  if (text === undefined) return undefined;
  if (!/^\d{1,15}$/.test(text)) throw badInput("A sequence must be a whole number, as a string.", field);
  if (Number(text) > head) throw badInput("There is no event with this sequence number yet.", field);
  return Number(text);
}
