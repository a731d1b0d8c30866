/**
 * Removes grants on functions, tables and views, and tests them by the rules for the catalog: those of a role on the
 * functions, or on the tables and views, of a schema at once, because each finding names its object, and such grants do
 * not affect findings about each other. Those on views affect findings about functions: what a view that nobody reads
 * calls needs no grant.
 */
import { Client } from "pg";
import { prepareChecks } from "../../src/checks/checkCatalog.ts";
import { gatherFacts } from "../../src/checks/catalogFacts.ts";
import { grantRules } from "../../src/checks/grantRules.ts";
import { sourceWords } from "../../src/checks/sources.ts";
import type { Mutant } from "./mutants.ts";

export interface GrantResult {
  mutant: Mutant;
  /** The rule that finds it. */
  rule?: string | undefined;
  /** Reason why the change has no effect. */
  equivalent?: string | undefined;
}

const revoked =
  /^revoke (?:EXECUTE|SELECT) on (?<kind>function|table) (?<signature>((?<schema>\w+)\..*)) from (?<role>\w+)$/;
const partsOf = ({ sql }: Mutant) =>
  revoked.exec(sql)?.groups as {
    kind: string;
    signature: string;
    schema: string;
    role: string;
  };

/**
 * @param databaseUrl a separate migrated database, as superuser
 * @param mutants grants; those to write are omitted
 * @throws Error if a rule finds something without a mutant
 */
export async function tryGrants(databaseUrl: string, mutants: readonly Mutant[]): Promise<GrantResult[]> {
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    await prepareChecks(client);
    // Calls between functions do not depend on grants.
    await gatherFacts(client, await sourceWords());
    const findings = async () => {
      const found = new Map<string, string>();
      for (const { name, query } of grantRules) {
        const { rows } = await client.query<{ object: string }>(query);
        for (const { object } of rows) found.set(object, name);
      }
      return found;
    };
    const before = await findings();
    if (before.size > 0) throw new Error(`The schema breaks rules: ${[...before].join("; ")}`);
    const { rows: kept } = await client.query<{ signature: string }>(
      `select f.object as signature from functions f where f.schema = 'app_hidden' and f.oid not in (select callee from service_calls)
         and not exists (select from reached r where r.oid = f.oid and r.role = 'plat_anonymous')`,
    );
    const afterSignIn = new Set(kept.map(({ signature }) => signature));
    const results: GrantResult[] = [];
    const known = mutants.filter((mutant) => revoked.test(mutant.sql));
    for (const group of Map.groupBy(known, (mutant) => {
      const { kind, role, schema } = partsOf(mutant);
      return `${role} ${schema} ${kind}`;
    }).values()) {
      await client.query(`begin; ${group.map(({ sql }) => sql).join("; ")}`);
      const found = await findings();
      await client.query("rollback");
      for (const mutant of group) {
        const { signature, role } = partsOf(mutant);
        const rule = found.get(`${signature} ${role}`) ?? found.get(signature);
        results.push({
          mutant,
          rule,
          equivalent:
            !rule && role === "plat_anonymous" && afterSignIn.has(signature)
              ? "What viewers may call of app_hidden is granted to visitors too by default; they are told to sign in before this is called."
              : undefined,
        });
      }
    }
    return results;
  } finally {
    await client.end();
  }
}
