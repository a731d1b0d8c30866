/** An expression or statement as printed by PostgreSQL, as a tree of its parentheses, brackets and CASE … END. */
export interface Group {
  open: "" | "(" | "[" | "case ";
  parts: Part[];
}
export type Part = string | Group;

const token =
  /\s+|IS (?:NOT )?DISTINCT FROM|E'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"(?:\.(?:\w+|"(?:[^"]|"")*"))*|[\w$]+(?:\.(?:\w+|"(?:[^"]|"")*"))*|[()[\]]|::|\|\||[^\s'"\w()[\]]/g;
const closing = { "": "", "(": ")", "[": "]", "case ": " end" };

/** Keywords are unquoted words in capitals; they are converted to lower case. */
export function parse(sql: string): Group {
  const root: Group = { open: "", parts: [] };
  const stack = [root];
  const push = (open: Group["open"]) => {
    const group: Group = { open, parts: [] };
    stack.at(-1)!.parts.push(group);
    stack.push(group);
  };
  for (const [written] of sql.trim().matchAll(token)) {
    const text = /^\s/.test(written)
      ? " "
      : /^[A-Z][A-Z_ ]*$/.test(written)
        ? written.toLowerCase()
        : written;
    if (text === "(" || text === "[") push(text);
    else if (text === "case") push("case ");
    else if ((text === ")" || text === "]" || text === "end") && stack.length > 1) trim(stack.pop()!);
    else stack.at(-1)!.parts.push(text);
  }
  return trim(root);
}

function trim(group: Group): Group {
  while (group.parts[0] === " ") group.parts.shift();
  while (group.parts.at(-1) === " ") group.parts.pop();
  return group;
}

/** The text of a tree, the inverse of `parse`. */
export function print(part: Part | readonly Part[]): string {
  if (typeof part === "string") return part;
  if (Array.isArray(part)) return part.map(print).join("");
  const { open, parts } = part as Group;
  return `${open}${print(parts)}${closing[open]}`;
}

/** The text that ends a group that is broken into lines. */
export function closingText(group: Group): string {
  return closing[group.open].trim();
}
