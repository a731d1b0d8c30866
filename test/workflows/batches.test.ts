import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { mostRowsRemoved } from "../harness/nestedPlans.ts";
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

/** Starts the workflow for all leads. */
async function start(workflow: string): Promise<void> {
  await client.query("begin");
  await client.query("select set_config('plat.user_id', $1, true), set_config('plat.channel', 'API', true)", [
    world.owen.id,
  ]);
  await client.query("select app_public.batch_workflow($1, leads_filter => '{}')", [workflow]);
  await client.query("commit");
}

test("a batch looks each of its subjects up once, also of tables that have just grown", async () => {
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
      const { rows } = await mostRowsRemoved(client, () => start(workflow));
      expect(rows).toBeLessThan(10 * AMOUNT);
      expect(await executions(workflow)).toBe(AMOUNT);
    }
  }
});
