/** Explains a GraphQL query for one viewer: its SQL statements, their plans, and the policies that apply. */
import { randomUUID } from "node:crypto";
import { Client } from "pg";
import { makeSchema } from "postgraphile";
import { grafast } from "postgraphile/grafast";
import { parse } from "postgraphile/graphql";
import { pgSettings, type Claims } from "../database/claims.ts";
import { onConnection } from "../database/onConnection.ts";
import { makePool } from "../database/pool.ts";
import { onStatement } from "../database/statementEvents.ts";
import { schemaOnlyPreset } from "../service/schemaOnly.ts";
import { explainStatement } from "./statement.ts";

export interface ExplainedStatement {
  text: string;
  values: readonly unknown[];
  /** Lines of the output of EXPLAIN (ANALYZE, BUFFERS). */
  plan: string[];
  /** Tables with row-level security that it reads. */
  relations: string[];
}

export interface Policy {
  /** Qualified name of the table. */
  relation: string;
  name: string;
  /** The condition that a row must fulfil, as SQL. If a table has several policies, one is sufficient. */
  condition: string;
}

export interface ExplainedQuery {
  statements: ExplainedStatement[];
  /** Policies of these tables that apply to the viewer. */
  policies: Policy[];
  /** The response, including errors. */
  answer: { data?: unknown; errors?: readonly { message: string }[] };
}

/** Milliseconds that a statement may take. */
const statementMs = 60_000;

export interface Explainer {
  /**
   * Executes a query, then executes each of its statements again with EXPLAIN, and rolls everything back.
   * @param claims of the viewer
   * @throws Error with a sentence for the user if the document is not a query
   */
  explain(claims: Claims, query: string, variables?: Record<string, unknown>): Promise<ExplainedQuery>;
  end(): Promise<void>;
}

/**
 * Reads a database and builds its schema.
 * @param authenticatorUrl connection string of the API
 */
export async function createExplainer(authenticatorUrl: string): Promise<Explainer> {
  const pool = makePool({ connectionString: authenticatorUrl, max: 2 });
  const alone = schemaOnlyPreset(pool, { signLoginToken: () => "", signFileAddress: () => "" });
  const { schema, resolvedPreset } = await makeSchema({
    extends: [alone],
    grafast: { context: (request) => (request as { explained?: object }).explained ?? {} },
  });
  return {
    explain: async (claims, query, variables = {}) => {
      for (const definition of parse(query).definitions)
        if (definition.kind === "OperationDefinition" && definition.operation !== "query")
          throw new Error("Only queries are explained: a mutation would be carried out.");
      const settings = pgSettings(claims, { requestId: randomUUID(), channel: "API" });
      const sent: Sent[] = [];
      const stop = onStatement((text, values) => sent.push({ text, values }));
      const answer = await Promise.resolve(
        grafast({
          schema,
          resolvedPreset,
          source: query,
          variableValues: variables,
          requestContext: {
            explained: {
              claims,
              isSignedIn: claims.userId !== null,
              ip: undefined,
              argumentTransforms: {},
              pgSettings: settings,
            },
          } as Partial<Grafast.RequestContext>,
        }),
      ).finally(stop);
      const explained = await explainSent(authenticatorUrl, settings, sent);
      return { ...explained, answer: answer as ExplainedQuery["answer"] };
    },
    end: () => pool.end(),
  };
}

interface Sent {
  text: string;
  values: readonly unknown[];
}

async function explainSent(
  authenticatorUrl: string,
  settings: Record<string, string>,
  sent: readonly Sent[],
): Promise<Omit<ExplainedQuery, "answer">> {
  const limits = {
    ...settings,
    statement_timeout: String(statementMs),
    transaction_read_only: "on",
  };
  return onConnection(authenticatorUrl, async (client) => {
    const statements: ExplainedStatement[] = [];
    for (const statement of sent) {
      const [structure] = await explainStatement(
        client,
        limits,
        statement,
        "verbose, timing off, format json",
      );
      const lines = await explainStatement(client, limits, statement, "buffers, settings");
      statements.push({
        ...statement,
        plan: lines.map((line) => line["QUERY PLAN"]),
        relations: [...new Set(relationsOf(structure!["QUERY PLAN"][0].Plan))].toSorted(),
      });
    }
    const read = new Set(statements.flatMap(({ relations }) => relations));
    return { statements, policies: await policiesOf(client, [...read], settings.role!) };
  });
}

interface PlanNode {
  "Relation Name"?: string;
  Schema?: string;
  Plans?: PlanNode[];
}

function* relationsOf(node: PlanNode): Generator<string> {
  if (node["Relation Name"] !== undefined) yield `${node.Schema}.${node["Relation Name"]}`;
  for (const below of node.Plans ?? []) yield* relationsOf(below);
}

async function policiesOf(client: Client, relations: string[], role: string): Promise<Policy[]> {
  const { rows } = await client.query<Policy>(
    `select p.schemaname || '.' || p.tablename as relation, p.policyname as name, p.qual as condition from pg_policies p
     where p.schemaname || '.' || p.tablename = any ($1) and p.cmd in ('SELECT', 'ALL') and ($2 = any (p.roles) or 'public' = any (p.roles))
     order by 1, 2`,
    [relations, role],
  );
  return rows;
}
