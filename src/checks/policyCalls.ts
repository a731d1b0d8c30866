/** A function call in the expression of a policy. */
export interface PolicyCall {
  function: number;
  /** Executed for each row of the table rather than once per statement. */
  perRow: boolean;
  /** None of its arguments is a column. */
  constant: boolean;
}

interface Node {
  name: string;
  function?: number;
  /** For a column: the query level of its table, counted outwards. */
  level?: number;
  children: Node[];
}

/** The nodes of a `pg_node_tree` in its text form: `{NAME :field value :field {NAME …}}`. */
function parse(tree: string): Node {
  const root: Node = { name: "ROOT", children: [] };
  const open = [root];
  for (const [, name, close, field, value] of tree.matchAll(
    /\\.|\{(\w+)|(\})|:(funcid|varlevelsup) (\d+)/gs,
  )) {
    const node = open.at(-1)!;
    if (name) {
      const child: Node = { name, children: [] };
      node.children.push(child);
      open.push(child);
    } else if (close) open.pop();
    else if (field === "funcid") node.function = Number(value);
    else if (field === "varlevelsup") node.level = Number(value);
  }
  return root;
}

/** Whether the expression contains a column of a table that is `outwards` or more query levels away. */
function readsColumn(node: Node, outwards: number): boolean {
  if (node.name === "VAR") return node.level! >= outwards;
  const from = outwards + (node.name === "QUERY" ? 1 : 0);
  return node.children.some((child) => readsColumn(child, from));
}

/**
 * The calls in an expression of a policy. A call is executed once per statement if it is in a sub-select that reads nothing from outside.
 * @param tree the text of pg_policy.polqual or polwithcheck
 */
export function policyCalls(tree: string): PolicyCall[] {
  const calls: PolicyCall[] = [];
  const visit = (node: Node, perRow: boolean) => {
    if (node.function !== undefined) {
      const constant = !node.children.some((child) => readsColumn(child, 0));
      calls.push({ function: node.function, perRow, constant });
    }
    const below = node.name === "QUERY" ? node.children.some((child) => readsColumn(child, 1)) : perRow;
    for (const child of node.children) visit(child, below);
  };
  visit(parse(tree), true);
  return calls;
}
