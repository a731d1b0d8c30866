import { closingText, parse, print, type Group, type Part } from "./expressionTree.ts";
import { simplify } from "./simplify.ts";

/** Maximum line length, and the length at which lines are broken if something may follow. */
export const lineLength = 120;
const room = lineLength - 4;

const clauses: ReadonlySet<Part> = new Set([
  ...[
    "select",
    "from",
    "join",
    "left",
    "where",
    "group",
    "order",
    "limit",
    "union",
    "having",
    "when",
    "else",
  ],
  ...["with", "referencing", "for", "execute", "include", "references"],
]);
const connectives: ReadonlySet<Part> = new Set(["and", "or"]);

/** A statement or expression as printed by PostgreSQL, simplified and broken into lines. */
export function format(
  sql: string,
  { indent = 0, used = indent }: { indent?: number; used?: number } = {},
): string {
  return lay(simplify(parse(sql)).parts, indent, used, indent + 2).join("\n");
}

/**
 * The function of a trigger is on a line of its own if the trigger has a condition, otherwise on the line of FOR EACH
 * ROW. A grant may begin with EXECUTE.
 */
function startsClause(part: Part, previous: Part | undefined): boolean {
  return clauses.has(part) && (part !== "execute" || typeof previous === "object");
}

/** Lines of which the first one continues the current line; the others include their indentation. */
function lay(parts: readonly Part[], indent: number, used: number, hanging: number): string[] {
  const flat = print(parts);
  if (used + flat.length <= room || parts.length === 0) return [flat];
  const steps = split(parts, startsClause);
  if (steps.length > 1) return stacked(steps, indent, used, hanging);
  const operands = split(parts, (part) => connectives.has(part));
  if (operands.length > 1)
    return stacked(operands, indent, used, clauses.has(parts[0]!) ? indent + 2 : indent);
  const texts = split(parts, (part) => part === "||");
  if (texts.length > 1) return stacked(texts, indent, used, indent);
  const items = listItems(parts);
  if (items.length > 1) return filled(items, clauses.has(parts[0]!) ? indent + 2 : indent, used);
  return opened(parts, indent, used);
}

/** Each piece on its own line. */
function stacked(pieces: Part[][], indent: number, used: number, hanging: number): string[] {
  return pieces.flatMap((piece, index) => {
    if (index === 0) return lay(piece, indent, used, hanging);
    return begin(hanging, lay(piece, hanging, hanging, hanging));
  });
}

/** As many items per line as fit. */
function filled(items: Part[][], indent: number, used: number): string[] {
  const lines = [""];
  let column = used;
  items.forEach((item, index) => {
    const text = `${print(item)}${index < items.length - 1 ? "," : ""}`;
    const gap = lines.at(-1)!.trim() === "" ? 0 : 1;
    if (column + gap + text.length <= room || (gap === 0 && print(item).length + indent <= room)) {
      lines[lines.length - 1] += `${gap ? " " : ""}${text}`;
      column += gap + text.length;
      return;
    }
    if (gap) lines.push(" ".repeat(indent));
    const [first, ...rest] = lay(item, indent, indent, indent);
    lines[lines.length - 1] += first!;
    lines.push(...rest);
    if (index < items.length - 1) lines[lines.length - 1] += ",";
    column = lines.at(-1)!.length;
  });
  return lines;
}

/** With the content of its largest group on separate lines. */
function opened(parts: readonly Part[], indent: number, used: number): string[] {
  const groups = parts.filter((part): part is Group => typeof part !== "string");
  const [largest] = groups.toSorted((a, b) => print(b).length - print(a).length);
  if (!largest || print(largest).length < 20) return wrapped(print(parts), indent, used);
  const at = parts.indexOf(largest);
  const inner = lay(largest.parts, indent + 2, indent + 2, indent + 2);
  const start = `${print(parts.slice(0, at))}${largest.open.trim()}`;
  const end = `${closingText(largest)}`;
  const [first, ...rest] = lay(parts.slice(at + 1), indent, indent + end.length, indent);
  const head = used + start.length > room ? wrapped(start, indent, used) : [start];
  return [...head, ...begin(indent + 2, inner), `${" ".repeat(indent)}${end}${first ?? ""}`, ...rest];
}

function wrapped(text: string, indent: number, used: number): string[] {
  const lines = [""];
  let column = used;
  for (const word of text.split(/ (?=(?:[^']|'[^']*')*$)/)) {
    if (column + word.length + 1 > room && lines.at(-1)!.trim() !== "") {
      lines.push(" ".repeat(indent + 2));
      column = indent + 2;
    }
    lines[lines.length - 1] += `${lines.at(-1)!.trim() === "" ? "" : " "}${word}`;
    column += word.length + 1;
  }
  return lines;
}

function begin(indent: number, [first, ...rest]: string[]): string[] {
  return [" ".repeat(indent) + first!, ...rest];
}

/** Splits into pieces that begin where `starts` is true, without the space between them. */
function split(
  parts: readonly Part[],
  starts: (part: Part, previous: Part | undefined) => boolean,
): Part[][] {
  const pieces: Part[][] = [[]];
  parts.forEach((part, index) => {
    if (index > 0 && starts(part, parts[index - 2])) pieces.push([]);
    pieces.at(-1)!.push(part);
  });
  return pieces.map(trimmed).filter((piece) => piece.length > 0);
}

function listItems(parts: readonly Part[]): Part[][] {
  return split(parts, (part) => part === ",").map((item) =>
    item[0] === "," ? trimmed(item.slice(1)) : item,
  );
}

function trimmed(parts: Part[]): Part[] {
  const isText = (part: Part) => part !== " ";
  const [first, last] = [parts.findIndex(isText), parts.findLastIndex(isText)];
  return first < 0 ? [] : parts.slice(first, last + 1);
}
