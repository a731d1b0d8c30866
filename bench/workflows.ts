/**
 * A workflow for 100,000 leads at once: the duration of batchWorkflow until all are queued, the steps per second of
 * one worker, the memory of the process meanwhile, and the duration of cancelling the rest. Compared with inserting
 * the same rows by plain statements, without triggers, events and steps. Limits: 15 s for queueing, and 1,000
 * steps/s. Run: npm run bench -- workflows
 */
import { performance } from "node:perf_hooks";
import { setTimeout as pause } from "node:timers/promises";
import { startWorld } from "../test/harness/world.ts";
import { createWorkflow, runWorkflows } from "../test/workflows/world.ts";
import { withDatabase } from "./data/cluster.ts";
import { sized, unlessSmoke } from "./data/size.ts";

/** Number of leads; set by BENCH_SIZE. */
const amount = sized(100_000, 20);
const mb = (bytes: number) => `${(bytes / 1e6).toFixed(0)} MB`;

/** Prints the duration of the work, its rate if it has an amount, and the growth of the process's memory. */
async function report(name: string, unit: string, work: () => Promise<number>): Promise<void> {
  globalThis.gc?.();
  const before = process.memoryUsage().rss;
  let peak = before;
  const sample = setInterval(() => (peak = Math.max(peak, process.memoryUsage().rss)), 20);
  const began = performance.now();
  const done = await work();
  const seconds = (performance.now() - began) / 1000;
  clearInterval(sample);
  console.log(
    `${name.padEnd(52)} ${seconds.toFixed(2).padStart(7)} s ${Math.round(done / seconds)
      .toLocaleString("en")
      .padStart(9)} ${unit}/s  memory +${mb(peak - before)}`,
  );
}

export default async function workflows(): Promise<void> {
  await withDatabase(async (database) => {
    const world = await startWorld(database);
    const { owner } = database;
    const one = async (text: string, values: unknown[] = []) => (await owner.query(text, values)).rows[0];
    try {
      await owner.query("begin; set local plat.numbers_at_once = 'on'");
      await owner.query(
        `insert into app_public.leads (project_id, name, email, assignee_id) select $1, 'Lead ' || n, 'lead' || n || '@example.com', $3
         from generate_series(1, $2::int) n`,
        [world.project.id, amount, world.max.id],
      );
      await owner.query("commit");
      await owner.query("vacuum analyze");
      const workflow = await createWorkflow(world, [
        { type: "ADD_TAG", config: { tag: "campaign" } },
        { type: "BRANCH", config: { condition: { "==": [{ var: "lead.status" }, "NEW"] }, else: 4 } },
        { type: "CREATE_TASK", config: { title: "Call {{ lead.name }}", dueInSeconds: 86_400 } },
        { type: "STOP" },
      ]);
      console.log(`${amount.toLocaleString("en")} leads, four steps each: a tag, a branch, a task, the end`);

      await owner.query(
        "create table app_private.bare_executions (like app_public.workflow_executions including defaults including indexes)",
      );
      await report("plain SQL: rows of executions with their indexes", "rows", async () => {
        await owner.query(
          `insert into app_private.bare_executions (organization_id, project_id, workflow_id, steps_revision, reentry, subject_type, subject_id, lead_id, trigger_type, current_step, scheduled_at)
           select l.organization_id, l.project_id, $1, 1, 'AFTER_COMPLETION', 'LEAD', l.id, l.id, 'BATCH', 1, now() from app_public.leads l`,
          [workflow],
        );
        return amount;
      });
      await report("batchWorkflow over HTTPS, by filter", "subjects", async () => {
        const { batchWorkflow } = await world.owen.get(
          "mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { counts } }",
          { input: { id: workflow, leadsFilter: { status: ["NEW"] } } },
        );
        return batchWorkflow.counts.PENDING;
      });

      const runs = async () =>
        (await one("select count(*)::int as n from app_public.workflow_step_runs")).n as number;
      const engine = await runWorkflows(world);
      await report("one worker, steps of the first three quarters", "steps", async () => {
        for (;;) {
          const done = await runs();
          if (done >= 3 * amount) return done;
          await pause(unlessSmoke(200, 5));
        }
      });
      const before = await runs();
      await report("cancelWorkflowExecutions meanwhile", "executions", async () => {
        const { cancelWorkflowExecutions } = await world.owen.get(
          "mutation ($id: ID!) { cancelWorkflowExecutions(input: { workflowId: $id }) { cancelledCount } }",
          { id: workflow },
        );
        return cancelWorkflowExecutions.cancelledCount;
      });
      const after = await runs();
      await pause(unlessSmoke(1500, 5));
      console.log(
        `steps taken before cancel answered: ${after - before}, in the 1.5 s after: ${(await runs()) - after}`,
      );
      await engine.stop();

      await report("plain SQL: the tag, the task and four runs, no events", "rows", async () => {
        await owner.query("begin; set local session_replication_role = replica");
        await owner.query("update app_public.leads set tags = '{campaign,again}'");
        await owner.query(
          `insert into app_public.tasks (organization_id, project_id, lead_id, title, assignee_id)
           select l.organization_id, l.project_id, l.id, 'Call ' || l.name, l.assignee_id from app_public.leads l`,
        );
        await owner.query(
          "create table app_private.bare_runs (like app_public.workflow_step_runs including defaults including indexes)",
        );
        await owner.query(
          `insert into app_private.bare_runs (execution_id, step_id, sequence, attempt, status)
           select e.id, uuidv7(), n, 1, 'SUCCEEDED' from app_private.bare_executions e, generate_series(1, 4) n`,
        );
        await owner.query("rollback");
        return 6 * amount;
      });
    } finally {
      await world.stop();
    }
  });
}
