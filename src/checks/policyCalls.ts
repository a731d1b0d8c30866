/** One call of a function in the expression of a policy. */
export interface PolicyCall {
  function: number;
  /** Carried out for each row of the table rather than once a statement. */
  perRow: boolean;
}

interface Node {
  name: string;
  function?: number;
  /** Of a variable: how many queries further out its table is. */
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

/** Whether anything in there is a column of the policy's own table, which is `depth` queries further out. */
function readsRow(node: Node, depth: number): boolean {
  if (node.name === "VAR") return node.level === depth;
  const below = depth + (node.name === "QUERY" ? 1 : 0);
  return node.children.some((child) => readsRow(child, below));
}

/**
 * The calls in an expression of a policy. One is carried out once a statement where it stands in a sub-select and neither
 * its arguments nor that sub-select read a column of the row.
 * @param tree the text of pg_policy.polqual or polwithcheck
 */
export function policyCalls(tree: string): PolicyCall[] {
  const calls: PolicyCall[] = [];
  const visit = (node: Node, depth: number, correlated: boolean) => {
    if (node.function !== undefined) {
      const perRow = depth === 0 || correlated || node.children.some((child) => readsRow(child, depth));
      calls.push({ function: node.function, perRow });
    }
    const isQuery = node.name === "QUERY";
    const below = isQuery ? depth + 1 : depth;
    const reads = isQuery ? node.children.some((child) => readsRow(child, below)) : correlated;
    for (const child of node.children) visit(child, below, reads);
  };
  visit(parse(tree), 0, false);
  return calls;
}
