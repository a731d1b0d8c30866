/**
 * Determines which other rows are visible wherever a row is visible: the rows of other tables that its policies check
 * first.
 */

/** A column of the table with the key of another row that is visible as well. */
export interface VisibleReference {
  /** The other table. */
  table: number;
  /** The number of the column. */
  column: number;
}

interface Node {
  name: string;
  fields: Record<string, string>;
  children: Node[];
}

/** The nodes of a `pg_node_tree` in its text form: `{NAME :field value :field {NAME …}}`. */
function parse(tree: string): Node {
  const root: Node = { name: "ROOT", fields: {}, children: [] };
  const open = [root];
  for (const [, name, close, field, value] of tree.matchAll(
    /\\.|\{(\w+)|(\})|:(boolop|relid|varno|varattno|varlevelsup|opno) (\w+)/gs,
  )) {
    const node = open.at(-1)!;
    if (name) {
      const child: Node = { name, fields: {}, children: [] };
      node.children.push(child);
      open.push(child);
    } else if (close) open.pop();
    else if (field) node.fields[field] ??= value!;
  }
  return root;
}

/** `=` of uuid. */
const equals = "2972";

/**
 * `(select true from other where other.id = row.column)`: limited to the viewer's rows of the other table, because policies apply there as
 * well.
 */
function lookedAt(node: Node): VisibleReference[] {
  const [query] = node.name === "SUBLINK" ? node.children.filter(({ name }) => name === "QUERY") : [];
  if (!query) return [];
  const tables = query.children.filter(({ name }) => name === "RANGETBLENTRY");
  const [quals] = query.children.find(({ name }) => name === "FROMEXPR")?.children.slice(-1) ?? [];
  const conditions = quals?.fields["boolop"] === "and" ? quals.children : [quals];
  const condition = conditions.find((one) => one?.name === "OPEXPR" && one.fields["opno"] === equals);
  if (tables.length !== 1 || !condition) return [];
  const variables = condition.children.filter(({ name }) => name === "VAR");
  const [inner] = variables.filter(
    ({ fields }) => fields["varlevelsup"] === "0" && fields["varattno"] === "1",
  );
  const [outer] = variables.filter(({ fields }) => fields["varlevelsup"] === "1");
  return inner && outer
    ? [{ table: Number(tables[0]!.fields["relid"]), column: Number(outer.fields["varattno"]) }]
    : [];
}

const isIn = (sights: readonly VisibleReference[]) => (one: VisibleReference) =>
  sights.some(({ table, column }) => table === one.table && column === one.column);

function sightsOf(node: Node): VisibleReference[] {
  if (node.name !== "BOOLEXPR") return lookedAt(node);
  const parts = node.children.map(sightsOf);
  if (node.fields["boolop"] === "and") return parts.flat();
  // For alternatives, the references that all of them check.
  if (node.fields["boolop"] === "or") return parts.reduce((both, one) => both.filter(isIn(one)));
  return [];
}

/** @param trees the texts of pg_policy.polqual of all policies that make a row visible */
export function visibleReferences(trees: readonly string[]): VisibleReference[] {
  const sights = trees.map((tree) => parse(tree).children.flatMap(sightsOf));
  return sights.length === 0 ? [] : sights.reduce((both, one) => both.filter(isIn(one)));
}
