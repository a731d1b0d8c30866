/** Queries of monitoring, and names that become metric labels. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { DatabaseClient } from "../../src/database/client.ts";
import { logSlowStatements } from "../../src/database/slowStatements.ts";
import { operationLabels } from "../../src/monitoring/operationLabels.ts";
import { readWork } from "../../src/monitoring/readWork.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let owner: Client;
beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Client({ connectionString: database.ownerUrl });
  await owner.connect();
});
afterAll(async () => {
  await owner?.end();
  await database?.drop();
});

const numbers = async () => {
  const work = readWork(database.authenticatorUrl, { warn() {} });
  try {
    const rows = await work.read();
    return new Map(rows.map(({ metric, label, value }) => [`${metric} ${label}`.trim(), value]));
  } finally {
    await work.end();
  }
};

test("waiting work is counted by task and state, with the age of the oldest, up to a maximum", async () => {
  await owner.query(
    `select graphile_worker.add_job('files__sweep', run_at => now() - interval '90 s') from generate_series(1, 30);
     select graphile_worker.add_job('exports__sweep', run_at => now() + interval '1 h');`,
  );
  const found = await numbers();
  expect(found.get("jobs_due files__sweep")).toBe(30);
  expect(found.get("jobs_scheduled exports__sweep")).toBe(1);
  expect(found.get("job_oldest_due_seconds files__sweep")).toBeGreaterThan(89);
  expect(found.get("job_oldest_due_seconds exports__sweep")).toBe(0);
  await owner.query(
    "create or replace function app_private.counted_at_most() returns int language sql immutable as 'select 10'",
  );
  expect((await numbers()).get("jobs_due files__sweep")).toBe(10);
});

test("viewers and background work cannot read it", async () => {
  for (const role of ["plat_user", "plat_anonymous", "plat_worker"])
    for (const name of [
      "work_numbers",
      "job_numbers",
      "stream_numbers",
      "backlog_numbers",
      "server_numbers",
    ]) {
      const { rows } = await owner.query("select has_function_privilege($1, $2, 'execute') as may", [
        role,
        `app_private.${name}()`,
      ]);
      expect([role, name, rows[0].may]).toEqual([role, name, false]);
    }
});

test("logs a slow statement without the password of a role", async () => {
  const lines: { statement?: string }[] = [];
  const end = logSlowStatements({ warn: (line: object) => void lines.push(line) }, 1);
  const client = new DatabaseClient({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    await client.query("select pg_sleep(0.005) /* alter role r with password 'it''s a secret' */");
  } finally {
    await client.end();
    end();
  }
  expect(lines.map(({ statement }) => statement)).toContain(
    "select pg_sleep(0.005) /* alter role r with password '[redacted]' */",
  );
});

test("limits the number of labels for arbitrary operation names", () => {
  const labelOf = operationLabels();
  const label = (name: string | undefined, isRegistered: boolean, isTrusted: boolean) =>
    labelOf({ name, isRegistered, isTrusted });
  expect(label(undefined, false, true)).toBe("anonymous");
  expect(label("Guess", false, false)).toBe("other");
  const trusted = Array.from({ length: 1_000 }, (_, n) => label(`T${n}`, false, true));
  expect(new Set(trusted).size).toBe(101);
  // Names of viewers do not use up the limit of registered names.
  const registered = Array.from({ length: 1_000 }, (_, n) => label(`R${n}`, true, false));
  expect(new Set(registered).size).toBe(201);
  expect([label("T0", false, false), label("T999", false, true), label("R0", false, false)]).toEqual([
    "T0",
    "other",
    "R0",
  ]);
});
