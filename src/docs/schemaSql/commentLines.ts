import { lineLength } from "./sqlLayout.ts";

/**
 * The text of a comment as SQL comments. Continuations of long lines are indented further than the text's own lines.
 */
export function commentLines(text: string | undefined, indent = 0): string[] {
  if (text === undefined) return [];
  const margin = " ".repeat(indent);
  return text
    .split("\n")
    .flatMap((line) => wrap(line, lineLength - indent - 5))
    .map((line) => `${margin}--${line}`.trimEnd());
}

function wrap(text: string, width: number): string[] {
  const lines = [" "];
  for (const word of text.split(" ")) {
    const last = lines.at(-1)!;
    if (last.trim() !== "" && last.length + word.length + 1 > width) lines.push(`   ${word}`);
    else
      lines[lines.length - 1] =
        last.trim() === "" && last !== " " ? last + word : `${last}${last === " " ? "" : " "}${word}`;
  }
  return lines;
}

/** An item of a list with its comment: behind it if both fit on one line, otherwise above it. */
export function withComment(item: string, comment: string | undefined, indent: number): string[] {
  const margin = " ".repeat(indent);
  const lines = `${margin}${item}`.split("\n");
  if (comment === undefined) return lines;
  const line = `${margin}${item} -- ${comment}`;
  if (lines.length === 1 && !comment.includes("\n") && line.length <= lineLength) return [line];
  return [...commentLines(comment, indent), ...lines];
}
