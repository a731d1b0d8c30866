/** Looks at an installation as a whole: what does not work, and what will not for long. */
import { onConnection } from "../database/onConnection.ts";
import { databaseChecks } from "./database.ts";
import { problem, type Finding, type HealthCheck, type Installation } from "./finding.ts";
import { machineChecks } from "./machine.ts";
import { workChecks } from "./work.ts";

/** What a check has found. */
export interface Report {
  name: string;
  findings: Finding[];
}

/** Milliseconds that a statement may take: a check must not become a load of its own. */
const statementMs = 60_000;

/** All checks, in the order of the report. */
export const checks: readonly HealthCheck[] = [...machineChecks, ...databaseChecks, ...workChecks];

/** Runs all checks, one after the other; one that fails is a finding itself. */
export async function* examine(of: Omit<Installation, "client">): AsyncGenerator<Report> {
  for (const { name, check } of checks)
    yield await onConnection(of.loginUrl, async (client) => {
      await client.query(`set statement_timeout = ${statementMs}`);
      return { name, findings: await check({ ...of, client }) };
    }).catch((error: Error) => ({
      name,
      findings: [problem(`This could not be looked at: ${error.message}`, "Mend that, and ask again.")],
    }));
}
