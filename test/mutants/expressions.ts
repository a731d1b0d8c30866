/** Variants of SQL expressions and queries without one of their conditions, generated from the parse tree. */
import { deparseSync, parseSync } from "pgsql-parser";

/** A node of the parser's tree: an object with one key, its type. */
type Node = Record<string, unknown>;

/** An SQL text with one change. */
export interface Variant {
  /** Description of the change, for the report. */
  change: string;
  sql: string;
}

const constant = (value: boolean): Node => ({ A_Const: { boolval: { boolval: value } } });
const isConstant = (node: Node): boolean => "A_Const" in node;

/**
 * One variant for each condition of the query: an operand of AND becomes true, one of OR becomes false, NOT is dropped, and a call of one
 * of the predicates, wherever it stands, becomes true.
 * @param predicates names of functions that decide on permissions, with their schema
 * @throws Error where the parser does not understand the query
 */
export function variantsOfQuery(query: string, predicates: ReadonlySet<string>): Variant[] {
  const count = places(parseSync(query), predicates).length;
  return Array.from({ length: count }, (_, index) => {
    // Each variant changes its own tree.
    const tree = parseSync(query);
    const { change, apply } = places(tree, predicates)[index]!;
    apply();
    return { change, sql: deparseSync(tree) };
  });
}

/** The same for an expression. */
export function variantsOfExpression(expression: string, predicates: ReadonlySet<string>): Variant[] {
  return variantsOfQuery(`select (${expression})`, predicates).map(({ change, sql }) => ({
    change,
    sql: sql.replace(/^select\s/i, "").replace(/;\s*$/, ""),
  }));
}

interface Place {
  change: string;
  apply(): void;
}

function places(tree: unknown, predicates: ReadonlySet<string>): Place[] {
  const found: Place[] = [];
  visit(tree, () => {});
  return found;

  function visit(value: unknown, replace: (by: Node) => void): void {
    if (Array.isArray(value)) value.forEach((item, index) => visit(item, (by) => void (value[index] = by)));
    else if (value && typeof value === "object") {
      const node = value as Node;
      const { BoolExpr: condition, FuncCall: call } = node as {
        BoolExpr?: { boolop: string; args: Node[] };
        FuncCall?: { funcname: { String: { sval: string } }[] };
      };
      if (condition) conditions(condition, replace);
      if (call && predicates.has(call.funcname.map((part) => part.String.sval).join(".")))
        found.push({ change: `${text(node)} → true`, apply: () => replace(constant(true)) });
      for (const key of Object.keys(node)) visit(node[key], (by) => void (node[key] = by));
    }
  }

  function conditions({ boolop, args }: { boolop: string; args: Node[] }, replace: (by: Node) => void): void {
    if (boolop === "NOT_EXPR") {
      found.push({ change: `not ${text(args[0]!)} → true`, apply: () => replace(constant(true)) });
      return;
    }
    const neutral = boolop === "AND_EXPR";
    args.forEach((arg, index) => {
      // Calls of predicates are separate conditions.
      if (isConstant(arg) || (neutral && isCallOf(arg))) return;
      found.push({
        change: `${neutral ? "and" : "or"} ${text(arg)} → ${neutral}`,
        apply: () => void (args[index] = constant(neutral)),
      });
    });
  }

  function isCallOf(node: Node): boolean {
    const call = node.FuncCall as { funcname: { String: { sval: string } }[] } | undefined;
    return Boolean(call && predicates.has(call.funcname.map((part) => part.String.sval).join(".")));
  }
}

/** The node as SQL, on one line. */
function text(node: Node): string {
  const statement = {
    version: 180_000,
    stmts: [
      {
        stmt: {
          SelectStmt: {
            targetList: [{ ResTarget: { val: node } }],
            limitOption: "LIMIT_OPTION_DEFAULT",
            op: "SETOP_NONE",
          },
        },
      },
    ],
  };
  try {
    return deparseSync(statement as never)
      .replace(/^select\s+/i, "")
      .replace(/\s+/g, " ")
      .slice(0, 160);
  } catch {
    return Object.keys(node)[0]!;
  }
}
