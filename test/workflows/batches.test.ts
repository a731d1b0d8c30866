import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startWorld, type World } from "../harness/world.ts";
import { createWorkflow } from "./world.ts";

const AMOUNT = 2_000;
let database: TestDatabase;
let world: World;
let client: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  world = await startWorld(database);
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  // All of it within a moment: the planner knows nothing of these rows yet.
  await client.query("begin; set local plat.numbers_at_once = 'on'");
  await client.query(
    "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, $2::int) n",
    [world.project.id, AMOUNT],
  );
  await client.query("commit");
});
afterAll(async () => {
  await client.end();
  await world.stop();
  await database.drop();
});

/** Starts the workflow for all leads. Returns the numbers of rows that statements compared and read in vain. */
async function start(workflow: string): Promise<{ compared: number; filtered: number }> {
  let [compared, filtered] = [0, 0];
  const add = (text: string, pattern: RegExp) =>
    [...text.matchAll(pattern)].reduce((sum, [, rows, loops]) => sum + Number(rows) * Number(loops ?? 1), 0);
  const read = ({ message = "" }: { message?: string | undefined }) => {
    compared += add(message, /Rows Removed by Join Filter: (\d+)/g);
    filtered += add(message, /loops=(\d+)\)[^(]*?Rows Removed by Filter: (\d+)/gs);
  };
  client.on("notice", read);
  await client.query("begin");
  await client.query("select set_config('plat.user_id', $1, true), set_config('plat.channel', 'API', true)", [
    world.owen.id,
  ]);
  await client.query("select app_public.batch_workflow($1, leads_filter => '{}')", [workflow]);
  await client.query("commit");
  client.off("notice", read);
  return { compared, filtered };
}

test("a batch looks each of its subjects up once, also of tables that have just grown", async () => {
  await client.query(
    `load 'auto_explain'; set auto_explain.log_min_duration = 0; set auto_explain.log_analyze = on;
     set auto_explain.log_timing = off; set auto_explain.log_nested_statements = on;
     set auto_explain.log_level = notice; set client_min_messages = notice`,
  );
  const steps = [{ type: "ADD_TAG", config: { tag: "campaign" }, waitSeconds: 3_600 }, { type: "STOP" }];
  const executions = async (workflow: string) =>
    (
      await client.query<{ n: number }>(
        "select count(*)::int as n from app_public.workflow_executions where workflow_id = $1",
        [workflow],
      )
    ).rows[0]!.n;
  for (const reentry of ["AFTER_COMPLETION", "NEVER"]) {
    const workflow = await createWorkflow(world, steps, { reentry });
    // The second time, all of them run already.
    for (let n = 0; n < 2; n += 1) {
      const { compared, filtered } = await start(workflow);
      expect(compared).toBeLessThan(10 * AMOUNT);
      expect(filtered).toBeLessThan(10 * AMOUNT);
      expect(await executions(workflow)).toBe(AMOUNT);
    }
  }
});
