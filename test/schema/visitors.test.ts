/** Operations that refuse visitors, called by one. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { readRequirements } from "../fuzz/requirements.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { visitorResults } from "../harness/visitorCalls.ts";

let database: TestDatabase;
let client: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

test("operations that are not for visitors ask them to sign in before reading the input", async () => {
  await client.query("begin");
  const results = await visitorResults(client);
  await client.query("rollback");
  expect(results.size).toBeGreaterThan(80);
  const forVisitors = new Set(
    Object.entries(readRequirements()).flatMap(([name, takes]) => (takes.includes("nothing") ? [name] : [])),
  );
  const others = [...results].filter(
    ([name, sentence]) =>
      !forVisitors.has(operationOf(name)) && !sentence?.startsWith("Sign in first: send the header"),
  );
  expect(others).toEqual([]);
});

/** @param signature such as `app_public.create_lead(jsonb)` */
const operationOf = (signature: string): string =>
  signature.replace(/^\w+\.|\(.*$/g, "").replaceAll(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
