/** JSON from clients, measured byte by byte before it is parsed, since one byte can become an object. */
import { CodedError } from "../base/errors.ts";

export const jsonLimits = {
  /**
   * Maximum number of members, elements, objects and arrays in a text: an object of 16 bytes can take 100 in memory.
   */
  values: 250_000,
  /** Maximum nesting depth. */
  depth: 64,
} as const;

const QUOTE = 0x22;
const BACKSLASH = 0x5c;
const COMMA = 0x2c;
const OPEN_BRACKET = 0x5b;
const CLOSE_BRACKET = 0x5d;
const OPEN_BRACE = 0x7b;
const CLOSE_BRACE = 0x7d;
const LETTER_U = 0x75;
const ZERO = 0x30;

/** Contents of a text, counted up to the limits. */
export interface JsonMeasure {
  /** Upper bound: each comma ends a value, each bracket and brace begins one. */
  values: number;
  depth: number;
}

/** Contents of a text, as returned by {@link measureJson}. */
interface FoundJson extends JsonMeasure {
  /** Whether it may contain a NUL character: only as an escape, since a literal one is invalid JSON. */
  mayHoldNul: boolean;
}

/** Position of the closing quote of the string that begins at `from`; the length if there is none. */
function endOfString(bytes: Uint8Array, from: number, found: FoundJson): number {
  for (let at = from; at < bytes.length; at++) {
    const byte = bytes[at];
    if (byte === QUOTE) return at;
    if (byte !== BACKSLASH) continue;
    at++;
    if (bytes[at] === LETTER_U && isNul(bytes, at + 1)) found.mayHoldNul = true;
  }
  return bytes.length;
}

function isNul(bytes: Uint8Array, from: number): boolean {
  for (let at = from; at < from + 4; at++) if (bytes[at] !== ZERO) return false;
  return true;
}

/**
 * Counts the values of a text without parsing it; stops when a limit is exceeded. The result for invalid JSON is
 * arbitrary.
 */
export function measureJson(bytes: Uint8Array, limits: JsonMeasure = jsonLimits): FoundJson {
  const found = { values: 0, depth: 0, mayHoldNul: false };
  let depth = 0;
  for (let at = 0; at < bytes.length; at++) {
    switch (bytes[at]) {
      case QUOTE:
        at = endOfString(bytes, at + 1, found);
        break;
      case COMMA:
        found.values++;
        break;
      case OPEN_BRACKET:
      case OPEN_BRACE:
        found.values++;
        if (++depth > found.depth) found.depth = depth;
        break;
      case CLOSE_BRACKET:
      case CLOSE_BRACE:
        depth--;
    }
    if (found.values > limits.values || found.depth > limits.depth) return found;
  }
  return found;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Parses a text in UTF-8, and returns whether strings in it may contain NUL characters.
 * @param what name of the text in messages, such as "The body"
 * @throws CodedError BAD_USER_INPUT for invalid JSON or excessive depth, LIMIT_EXCEEDED for too many values
 */
export function parseJson(bytes: Uint8Array, what: string): { value: unknown; mayHoldNul: boolean } {
  const { values, depth, mayHoldNul } = measureJson(bytes);
  if (depth > jsonLimits.depth)
    throw new CodedError("BAD_USER_INPUT", `Values can be nested at most ${jsonLimits.depth} levels deep.`);
  if (values > jsonLimits.values)
    throw new CodedError(
      "LIMIT_EXCEEDED",
      `${what} can have at most ${jsonLimits.values} values; send fewer at a time.`,
      { limit: jsonLimits.values },
    );
  try {
    return { value: JSON.parse(utf8.decode(bytes)), mayHoldNul };
  } catch {
    throw new CodedError("BAD_USER_INPUT", `${what} is not valid JSON in UTF-8.`);
  }
}

/**
 * Path of the first string or member name that contains a NUL character; undefined if there is none. Recursive, since
 * the depth is bounded, and without an allocation per value.
 */
export function pathOfNul(value: unknown, path: string): string | undefined {
  if (typeof value === "string") return value.includes("\0") ? path : undefined;
  if (typeof value !== "object" || value === null) return undefined;
  if (Array.isArray(value)) {
    for (let index = 0; index < value.length; index++) {
      const found = pathOfNul(value[index], "");
      if (found !== undefined) return `${path}.${index}${found}`;
    }
    return undefined;
  }
  for (const key in value) {
    if (key.includes("\0")) return path;
    const found = pathOfNul((value as Record<string, unknown>)[key], "");
    if (found !== undefined) return `${path}.${key}${found}`;
  }
  return undefined;
}
