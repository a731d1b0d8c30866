type Part = string | Group;
interface Group {
  parts: Part[];
}

/** Strings (with escape prefixes), quoted names, parentheses, connectives, and everything in between. */
const token =
  /\bE'(?:[^'\\]|''|\\[\s\S])*'|'(?:[^']|'')*'|"(?:[^"]|"")*"|[()]|\b(?:AND|OR)\b|[^'"()AOE]+|[\s\S]/g;

const connective = /\b(?:AND|OR)\b/;

/**
 * Flattens `((a OR b) OR c)` in an expression printed by PostgreSQL to `(a OR b OR c)`, likewise for AND. PostgreSQL
 * keeps the inner parentheses of chains that it built itself, such as row comparisons, and drops them when it parses
 * the expression again; without this, an object recreated from its own definition would differ from it.
 */
export function flattenLogic(expression: string): string {
  // PERF: most definitions have none.
  if (!connective.test(expression)) return expression;
  const root: Group = { parts: [] };
  const open = [root];
  for (const [text] of expression.matchAll(token)) {
    const group = open.at(-1)!;
    if (text === "(") {
      const inner = { parts: [] };
      group.parts.push(inner);
      open.push(inner);
    } else if (text === ")" && open.length > 1) flatten(open.pop()!);
    else group.parts.push(text);
  }
  return print(root);
}

const isConnective = (part: Part) => part === "AND" || part === "OR";
const isSpace = (part: Part | undefined) => typeof part === "string" && part.trim() === "";

/** The connective of a group that has no other, whose operands may be anything. */
function connectiveOf({ parts }: Group): Part | undefined {
  const connectives = parts.filter(isConnective);
  return connectives.every((part) => part === connectives[0]) ? connectives[0] : undefined;
}

/** Puts the operands of operands that are groups of the same connective in their place; those are flat already. */
function flatten(group: Group): void {
  const own = connectiveOf(group);
  if (!own) return;
  group.parts = group.parts.flatMap((part, index, parts) => {
    const alone = ends(parts[index - 1], parts[index - 2]) && ends(parts[index + 1], parts[index + 2]);
    return typeof part !== "string" && alone && connectiveOf(part) === own ? part.parts : [part];
  });
}

/** Whether an operand ends where these are the next two parts. */
function ends(next: Part | undefined, afterNext: Part | undefined): boolean {
  return next === undefined || (isSpace(next) && (afterNext === undefined || isConnective(afterNext)));
}

function print({ parts }: Group): string {
  return parts.map((part) => (typeof part === "string" ? part : `(${print(part)})`)).join("");
}
