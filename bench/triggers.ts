/**
 * Cost of events that trigger workflows: leads created one by one with and without an enabled workflow; the latency
 * from commit to execution; and the events per second of one process when 5,000 wait, if all of them trigger
 * executions, and if conditions exclude all of them. Run: npm run bench -- triggers
 */
import { performance } from "node:perf_hooks";
import pino from "pino";
import { createCompute } from "../src/compute/computePool.ts";
import { startTriggers } from "../src/workflows/triggers.ts";
import { startWorld } from "../test/harness/world.ts";
import { percentile, withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

/** Number of waiting events; set by BENCH_SIZE. */
const amount = sized(5_000, 20);
const single = unlessSmoke(300, 3);
const measured = unlessSmoke(100, 2);

export default async function triggers(): Promise<void> {
  await withDatabase(async (database) => {
    const world = await startWorld(database);
    const { owner } = database;
    const log = pino({ level: "warn" });
    const compute = createCompute({ log });
    const start = () => startTriggers({ connectionString: database.workerUrl, compute, log });
    const timed = async (work: () => Promise<unknown>): Promise<number> => {
      const began = performance.now();
      await work();
      return performance.now() - began;
    };
    const leads = (some: number) =>
      owner.query(
        "insert into app_public.leads (project_id, name) select $1, 'Lead ' || n from generate_series(1, $2::int) n",
        [world.project.id, some],
      );
    const oneByOne = async () => {
      for (let i = 0; i < single; i++) await leads(1);
    };
    const behind = async () =>
      (
        await owner.query(
          `select from app_private.workflow_streams s join app_private.event_counters c on c.stream_id = s.organization_id and c.last_sequence > s.last_sequence`,
        )
      ).rowCount! > 0;
    const enabled = async (conditions: unknown): Promise<string> => {
      const { createWorkflow } = await world.owen.get(
        "mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }",
        {
          input: {
            organizationId: world.harbour.id,
            name: "Bench",
            subjectType: "LEAD",
            trigger: { type: "EVENT", event: "lead.created" },
            conditions,
            steps: [{ type: "WAIT", waitSeconds: 86_400 }],
          },
        },
      );
      await world.owen.get("mutation ($id: ID!) { enableWorkflow(input: { id: $id }) { id } }", {
        id: createWorkflow.id,
      });
      // Above the rate limit of a minute, which is not measured here.
      await owner.query(
        "update app_private.workflow_streams set started = -1000000000, minute = now() + interval '1 day'",
      );
      return createWorkflow.id;
    };
    const disable = (id: string) =>
      world.owen.get("mutation ($id: ID!) { disableWorkflow(input: { id: $id }) { id } }", { id });
    try {
      await oneByOne();
      const without = await timed(oneByOne);
      const isNew = { "==": [{ var: "lead.status" }, "NEW"] };
      const watched = await enabled(isNew);
      const looking = await start();
      console.log(
        `${single} leads one by one: ${without.toFixed(0)} ms, ${(await timed(oneByOne)).toFixed(0)} ms with a workflow that each starts`,
      );
      const waits: number[] = [];
      for (let i = 0; i < measured; i++) {
        await leads(1);
        waits.push(
          await timed(async () => {
            while (await behind());
          }),
        );
      }
      console.log(
        `from commit to execution: p50 ${percentile(waits, 0.5).toFixed(1)} ms, p95 ${percentile(waits, 0.95).toFixed(1)} ms`,
      );
      await looking.stop();
      await disable(watched);
      for (const [name, conditions] of [
        ["all start one", null],
        ["all start one, by a condition", isNew],
        ["none starts one, by a condition", { "==": [{ var: "lead.status" }, "HOT"] }],
      ] as const) {
        const id = await enabled(conditions);
        await leads(amount);
        const ms = await timed(async () => {
          const reading = await start();
          while (await behind());
          await reading.stop();
        });
        console.log(`${amount} events, ${name}: ${Math.round((amount / ms) * 1000)} events/s`);
        await disable(id);
      }
    } finally {
      await compute.stop();
      await world.stop();
    }
  });
}
