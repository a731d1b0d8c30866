/** Changes of a source text, as Stryker's report describes them. */

/** A place in a text; lines and columns count from 1. */
export interface Position {
  line: number;
  column: number;
}

export interface Replacement {
  location: { start: Position; end: Position };
  replacement: string;
}

/** The position as a number of characters. */
export function offsetOf(text: string, { line, column }: Position): number {
  let start = 0;
  for (let passed = 1; passed < line; passed++) {
    const end = text.indexOf("\n", start);
    if (end < 0) throw new RangeError(`The text has no line ${line}.`);
    start = end + 1;
  }
  return start + column - 1;
}

/** The text with what is at the location replaced. */
export function withReplacement(text: string, { location, replacement }: Replacement): string {
  return (
    text.slice(0, offsetOf(text, location.start)) + replacement + text.slice(offsetOf(text, location.end))
  );
}
