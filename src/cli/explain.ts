/**
 * `npm run explain -- --as ada@example.com '{ leads(first: 20) { id name } }'`: executes a query as that user, and
 * shows each SQL statement, its plan, and the policies that decide which rows the user sees. Without `--as`, as a
 * visitor.
 * `--variables '{"id": "…"}'` are the variables of the query. With `--scopes lead.read,project.read`, it is executed
 * as with an access token that is restricted to these permissions. Mutations are refused.
 */
import { parseArgs } from "node:util";
import { anonymous, type Claims } from "../database/claims.ts";
import { loadConfig } from "../base/config.ts";
import { onConnection } from "../database/onConnection.ts";
import { ownerUrl } from "../database/roles.ts";
import { apiUrlOf } from "../database/pooler.ts";
import { withDatabase } from "../database/running.ts";
import { createExplainer, type ExplainedQuery } from "../explain/query.ts";
import { ignoreClosedOutput } from "./ignoreClosedOutput.ts";

ignoreClosedOutput();

try {
  const { values, positionals } = parseArgs({
    options: { as: { type: "string" }, variables: { type: "string" }, scopes: { type: "string" } },
    allowPositionals: true,
  });
  const [query] = positionals;
  if (query === undefined)
    throw new Error("Give the query: npm run explain -- --as ada@example.com '{ leads { id } }'");
  const config = loadConfig(process.env, ["--migrate-only"]);
  await withDatabase(config, async (loginUrl) => {
    const claims = await claimsOf(loginUrl, values.as, values.scopes?.split(","));
    const explainer = await createExplainer(apiUrlOf(config, loginUrl));
    try {
      show(await explainer.explain(claims, query, values.variables ? JSON.parse(values.variables) : {}));
    } finally {
      await explainer.end();
    }
  });
} catch (error) {
  console.error((error as Error).message);
  process.exitCode = 1;
}

async function claimsOf(
  loginUrl: string,
  email: string | undefined,
  scopes: string[] | undefined,
): Promise<Claims> {
  if (email === undefined) return anonymous;
  const { rows } = await onConnection(ownerUrl(loginUrl), (client) =>
    client.query<{ id: string | null }>("select app_private.account_named($1) as id", [email]),
  );
  if (!rows[0]?.id) throw new Error(`There is no user with the address ${email}.`);
  return { userId: rows[0].id, readOnly: true, ...(scopes && { scopes }) };
}

function show({ statements, policies, answer }: ExplainedQuery): void {
  for (const [index, { text, values, plan }] of statements.entries()) {
    console.log(`-- Statement ${index + 1} of ${statements.length}\n${text}`);
    if (values.length > 0) console.log(`-- with ${JSON.stringify(values)}`);
    console.log(`\n${plan.map((line) => `  ${line}`).join("\n")}\n`);
  }
  if (statements.length === 0) console.log("-- No statement: the query needs no data of the database.\n");
  for (const { relation, name, condition } of policies)
    console.log(`-- ${relation}: policy "${name}"\n${condition}\n`);
  for (const { message } of answer.errors ?? []) console.error(message);
  if (answer.errors) process.exitCode = 1;
}
