import { type Group, type Part } from "./expressionTree.ts";

const connectives: ReadonlySet<Part | undefined> = new Set(["and", "or"]);
/** Tokens before and after an operand that needs no parentheses. */
const before: ReadonlySet<Part | undefined> = new Set([
  "and",
  "or",
  "where",
  "on",
  "when",
  "then",
  "else",
  "having",
]);
const after: ReadonlySet<Part | undefined> = new Set([
  ...["and", "or", "then", "else", "when", "where", "group", "order", "limit", "having", "union"],
]);
const clauseAfterWhere: ReadonlySet<Part> = new Set(["group", "order", "limit", "having", "union"]);
/** Tokens before one expression in parentheses, which may itself be in parentheses. */
const wrapping: ReadonlySet<Part | undefined> = new Set([
  "check",
  "using",
  "when",
  "where",
  "and",
  "or",
  "not",
  "as",
]);

/**
 * Removes what PostgreSQL adds defensively: parentheses around operands of AND and OR, `::text` after strings, and
 * the default alias of a selected function.
 */
export function simplify(group: Group): Group {
  for (const part of group.parts) if (typeof part !== "string") simplify(part);
  group.parts = withoutAliases(withoutTextCasts(group.parts));
  group.parts = withoutParentheses(group);
  flattenConcatenation(group);
  return group;
}

function withoutTextCasts(parts: Part[]): Part[] {
  const drop = new Set<number>();
  parts.forEach((part, index) => {
    const isArray = typeof parts[index + 3] !== "string" && parts[index + 3] !== undefined;
    if (isString(part) && parts[index + 1] === "::" && parts[index + 2] === "text" && !isArray)
      drop.add(index + 1).add(index + 2);
  });
  return parts.filter((_, index) => !drop.has(index));
}

/** `((a || b) || c)`: concatenation is associative. */
function flattenConcatenation(group: Group): void {
  const [first, ...rest] = group.parts;
  if (
    isConcatenation(group.parts) &&
    typeof first === "object" &&
    first.open === "(" &&
    isConcatenation(first.parts)
  )
    group.parts = [...first.parts, ...rest];
}

/** Whether they are operands between `||` only. PostgreSQL puts those that are more than a name into parentheses. */
function isConcatenation(parts: readonly Part[]): boolean {
  return (
    parts.includes("||") &&
    !parts.some((part) => typeof part === "string" && !/^(?:\|\|| |::|'.*'|[\w.]+)$/s.test(part))
  );
}

const isString = (part: Part) => typeof part === "string" && /^E?'/.test(part);

/** `select app_hidden.f(…) as f`. */
function withoutAliases(parts: Part[]): Part[] {
  const as = parts.indexOf("as");
  const name = parts.slice(0, as).findLast((part) => typeof part === "string" && part !== " ");
  const isPlain = parts[0] === "select" && as > 0 && typeof parts[as - 2] !== "string";
  if (!isPlain || typeof name !== "string" || name.split(".").at(-1) !== parts[as + 2]) return parts;
  return [...parts.slice(0, as - 1), ...parts.slice(as + 3)];
}

function withoutParentheses(group: Group): Part[] {
  const { parts } = group;
  const words = (index: number, step: 1 | -1) => {
    const next = parts[index + step];
    return next === " " ? parts[index + 2 * step] : next;
  };
  return parts.flatMap((part, index): Part[] => {
    if (typeof part === "string" || part.open !== "(") return [part];
    const [left, right] = [words(index, -1), words(index, 1)];
    const only = part.parts.length === 1 ? part.parts[0] : undefined;
    if (parts[index + 1] === "::" && typeof only === "string" && /^[\w.]+$/.test(only)) return [only];
    if (only && typeof only !== "string" && only.open === "(" && wrapping.has(left) && !isQuery(only)) {
      part.parts = only.parts;
      return withoutParentheses({ open: group.open, parts: [part] });
    }
    // The tokens after WHERE are one expression, up to the end of the clause.
    if (left === "where" && (right === undefined || clauseAfterWhere.has(right)) && !isQuery(part))
      return part.parts;
    const isOperand =
      (before.has(left) || (left === undefined && group.open !== "")) &&
      (after.has(right) || (right === undefined && (group.open === "(" || group.open === "case ")));
    const isAlone = left === undefined && right === undefined;
    const startsCall = typeof parts[index - 1] === "string" && parts[index - 1] !== " ";
    return isOperand && !isAlone && !startsCall && !isQuery(part) && !isCompound(part) ? part.parts : [part];
  });
}

const isQuery = ({ parts }: Group) => parts[0] === "select" || parts[0] === "with";
const isCompound = ({ parts }: Group) => parts.some((part) => connectives.has(part) || part === ",");
