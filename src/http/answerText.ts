/** Serializes GraphQL responses in slices, so that a large one does not block the event loop. */
import { setImmediate as yieldToOthers } from "node:timers/promises";
import { performance } from "node:perf_hooks";

/** Milliseconds per iteration of the event loop for serializing responses, in total. */
const SLICE_MS = 8;
/** Chunks between checks of time and length. */
const PIECES = 50;

/** JSON that is already serialized. */
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

/** JSON text of a value in chunks: a value without nested objects or arrays is one chunk. */
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

/**
 * End of the time slice in this iteration of the event loop, shared by all responses in progress; undefined before it
 * has started.
 */
let sliceEnd: number | undefined;

function isOver(): boolean {
  const now = performance.now();
  if (sliceEnd === undefined) {
    sliceEnd = now + SLICE_MS;
    // Runs before those that wait for the next iteration.
    setImmediate(() => (sliceEnd = undefined));
  }
  return now > sliceEnd;
}

/**
 * Serializes a large response. Stops if the text exceeds the limit, and yields to others in between.
 * @param most characters
 * @returns undefined if it is longer
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
