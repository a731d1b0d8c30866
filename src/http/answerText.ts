import { setImmediate as yieldToOthers } from "node:timers/promises";
import { performance } from "node:perf_hooks";

/** Milliseconds for which writing answers, all together, holds the event loop at a time. */
const SLICE_MS = 8;
/** Pieces between two looks at the clock and the length. */
const PIECES = 50;

/** JSON that is written already. */
export class WrittenJson {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }

  toJSON(): unknown {
    return JSON.parse(this.text);
  }
}

const isPlain = (value: unknown): value is Record<string, unknown> | unknown[] =>
  typeof value === "object" && value !== null && typeof (value as { toJSON?: unknown }).toJSON !== "function";

/** The JSON text of a value in pieces: what holds no further object or list is one. */
function* pieces(value: unknown): Generator<string> {
  if (value instanceof WrittenJson) return yield value.text;
  if (!isPlain(value)) return yield JSON.stringify(value) ?? "null";
  let separator = "";
  if (Array.isArray(value)) {
    yield "[";
    for (const item of value) {
      yield separator;
      yield* pieces(item);
      separator = ",";
    }
    return yield "]";
  }
  if (!Object.values(value).some(isPlain)) return yield JSON.stringify(value);
  yield "{";
  for (const [key, member] of Object.entries(value)) {
    if (member === undefined) continue;
    yield `${separator}${JSON.stringify(key)}:`;
    yield* pieces(member);
    separator = ",";
  }
  return yield "}";
}

/** When the slice of this iteration of the event loop is over, which all answers that are being written share; undefined before it began. */
let sliceEnd: number | undefined;

function isOver(): boolean {
  const now = performance.now();
  if (sliceEnd === undefined) {
    sliceEnd = now + SLICE_MS;
    // Before those that wait for the next iteration go on.
    setImmediate(() => (sliceEnd = undefined));
  }
  return now > sliceEnd;
}

/**
 * The JSON text of a large answer. It stops when the text gets longer than allowed, and lets others in between.
 * @param most characters
 * @returns undefined when it is longer
 */
export async function answerText(answer: object, most: number): Promise<string | undefined> {
  const parts: string[] = [];
  let length = 0;
  isOver();
  for (const piece of pieces(answer)) {
    length += piece.length;
    if (length > most) return undefined;
    if (parts.push(piece) % PIECES === 0) while (isOver()) await yieldToOthers();
  }
  return parts.join("");
}
