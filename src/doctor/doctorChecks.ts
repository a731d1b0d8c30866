/** Checks an installation as a whole: existing problems, and those to come. */
import { onConnection } from "../database/onConnection.ts";
import { databaseChecks } from "./database.ts";
import { problem, type Finding, type HealthCheck, type Installation } from "./finding.ts";
import { machineChecks } from "./machine.ts";
import { workChecks } from "./work.ts";

/** The findings of one check. */
export interface Report {
  name: string;
  findings: Finding[];
}

/** Milliseconds that a statement may take, so that a check does not become a load of its own. */
const statementMs = 60_000;

/** All checks, in the order of the report. */
export const checks: readonly HealthCheck[] = [...machineChecks, ...databaseChecks, ...workChecks];

/** Runs all checks, one after the other. A check that fails is reported as a finding. */
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
