import { Client, type ClientBase } from "pg";
import { onStatement } from "../../src/database/statementEvents.ts";
import { explainStatement } from "../../src/explain/statement.ts";
import type { Api, Person } from "./api.ts";

/** A node of an executed plan. */
export interface Node {
  "Node Type": string;
  "Relation Name"?: string;
  "Index Name"?: string;
  "Function Name"?: string;
  "Actual Rows": number;
  "Actual Loops": number;
  "Rows Removed by Filter"?: number;
  Plans?: Node[];
}

/** How the statements of a request were executed. */
export interface Explained {
  statements: number;
  nodes: Node[];
  indexes: Set<string>;
  /** Rows of the table that were read, whether or not they passed a filter. */
  touched(relation: string): number;
  /** The largest number of rows that one sort received. */
  sorted: number;
}

/**
 * Executes a statement as a user, or as a visitor without a token, and rolls it back. Returns the nodes of its plan,
 * the root first. The plan is the same that the API uses.
 */
export async function plan(
  client: ClientBase,
  user: string | null,
  text: string,
  values: readonly unknown[] = [],
  settings: Record<string, string> = {},
): Promise<Node[]> {
  const claims = {
    role: user ? "plat_user" : "plat_anonymous",
    jit: "off",
    "plat.user_id": user ?? "",
    ...settings,
  };
  const rows = await explainStatement(client, claims, { text, values }, "timing off, format json");
  const below = (node: Node): Node[] => [ofWhole(node), ...(node.Plans ?? []).flatMap(below)];
  return below(rows[0]!["QUERY PLAN"][0].Plan);
}

const partition = /^events_(?:first|\d{4}q\d)(?=_|$)/;

/**
 * A node of a partition under the names of the partitioned table, unless it is a sequential scan of an empty partition.
 */
function ofWhole(node: Node): Node {
  const { "Relation Name": relation, "Index Name": index } = node;
  const isEmpty =
    node["Node Type"] === "Seq Scan" && node["Actual Rows"] + (node["Rows Removed by Filter"] ?? 0) === 0;
  if (isEmpty || (relation === undefined && index === undefined)) return node;
  return {
    ...node,
    ...(relation !== undefined && { "Relation Name": relation.replace(partition, "events") }),
    ...(index !== undefined && { "Index Name": index.replace(partition, "events") }),
  };
}

/** Rows of the table that were read, whether or not they passed a filter. */
export function touched(nodes: Node[], relation: string): number {
  return nodes
    .filter((node) => node["Relation Name"] === relation)
    .reduce((sum, n) => sum + times(n["Actual Rows"] + (n["Rows Removed by Filter"] ?? 0), n), 0);
}

/** EXPLAIN reports rows as an average per loop, rounded to hundredths. */
const times = (rows: number, { "Actual Loops": loops }: Node) => Math.round(rows * loops);

/** Tables that were read by a sequential scan. */
export const scanned = (nodes: Node[]): string[] =>
  nodes.filter((n) => n["Node Type"] === "Seq Scan").map((n) => n["Relation Name"]!);

/**
 * Sends a request to the API, then explains its statements, as the same viewer and role.
 * @param settings those of a restricted token
 */
export async function explain(
  api: Api,
  person: Person,
  query: string,
  variables: Record<string, unknown> = {},
  settings: Record<string, string> = {},
): Promise<Explained> {
  const sent: { text: string; values: readonly unknown[] }[] = [];
  const stop = onStatement((text, values) => sent.push({ text, values }));
  await person.get(query, variables).finally(stop);
  const client = new Client({ connectionString: api.database.authenticatorUrl });
  await client.connect();
  const nodes: Node[] = [];
  try {
    for (const { text, values } of sent)
      nodes.push(...(await plan(client, person.id, text, values, settings)));
  } finally {
    await client.end();
  }
  return {
    statements: sent.length,
    nodes,
    indexes: new Set(nodes.flatMap((node) => node["Index Name"] ?? [])),
    touched: (relation) => touched(nodes, relation),
    sorted: Math.max(
      0,
      ...nodes
        .filter((n) => n["Node Type"].includes("Sort"))
        .map((n) => (n.Plans?.[0]?.["Actual Rows"] ?? 0) * (n.Plans?.[0]?.["Actual Loops"] ?? 1)),
    ),
  };
}

/** The largest number of rows that were read or sorted; infinite if a whole table was read. */
export function cost(explained: Explained, relation: string): number {
  const whole = scanned(explained.nodes).includes(relation);
  return whole ? Infinity : Math.max(explained.touched(relation), explained.sorted);
}
