/** Triggers of workflows: events and schedules, exactly once, within limits. No steps are executed here. */
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "@jest/globals";
import pino from "pino";
import { nextRun } from "../../src/compute/schedule.ts";
import { startTriggers, type Triggers } from "../../src/workflows/triggers.ts";
import { testCompute } from "../harness/compute.ts";
import { createProject } from "../harness/portfolio.ts";
import { startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";

const compute = testCompute();
let world: World;
let triggers: Triggers[];

beforeAll(async () => {
  world = await startWorld();
  const options = { connectionString: world.database.workerUrl, compute, log: pino({ level: "silent" }) };
  // Two processes, as in a cluster.
  triggers = await Promise.all([startTriggers(options), startTriggers(options)]);
});
afterAll(async () => {
  await Promise.all(triggers.map((process) => process.stop()));
  await world.stop();
});
beforeEach(async () => {
  await world.owner.query("update app_public.workflows set status = 'DISABLED' where status = 'ENABLED'");
});

async function enabled(
  trigger: Record<string, unknown>,
  rest: Record<string, unknown> = {},
  person = world.owen,
): Promise<string> {
  const { createWorkflow } = await person.get(
    `mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }`,
    {
      input: {
        organizationId: world.harbour.id,
        name: "Automatic",
        subjectType: "LEAD",
        trigger,
        steps: [{ type: "ADD_TAG", config: { tag: "seen" } }],
        ...rest,
      },
    },
  );
  await act("enableWorkflow", createWorkflow.id, person);
  return createWorkflow.id;
}
const act = (operation: string, id: string, person = world.owen) =>
  person.get(`mutation ($id: ID!) { ${operation}(input: { id: $id }) { id } }`, { id });

let names = 0;
const lead = async (input: Record<string, unknown> = {}): Promise<string> =>
  (
    await world.owen.get(`mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }`, {
      input: { projectId: world.project.id, name: `Lead ${++names}`, ...input },
    })
  ).createLead.id;
const update = (id: string, input: Record<string, unknown>) =>
  world.owen.get(`mutation ($input: UpdateLeadInput!) { updateLead(input: $input) { id } }`, {
    input: { id, ...input },
  });

interface Execution {
  id: string;
  subject_id: string;
  status: string;
  trigger_type: string;
  event: string | null;
  depth: number;
  error: string | null;
}
async function executions(workflow: string): Promise<Execution[]> {
  const { rows } = await world.owner.query<Execution>(
    `select x.id, x.subject_id, x.status, x.trigger_type, x.depth, x.error, e.name as event
     from app_public.workflow_executions x left join app_public.events e on e.id = x.trigger_event_id where x.workflow_id = $1 order by x.id`,
    [workflow],
  );
  return rows;
}

/** Waits until all events are processed. */
async function caughtUp(): Promise<void> {
  await until(
    () =>
      world.owner.query(
        `select s.organization_id from app_private.workflow_streams s join app_private.event_counters c on c.stream_id = s.organization_id and c.last_sequence > s.last_sequence`,
      ),
    ({ rows }) => rows.length === 0,
  );
}

describe("events", () => {
  test("start enabled workflows of the organization and project, from then on, until they are disabled", async () => {
    const other = await createProject(world.owen, { organizationId: world.harbour.id, title: "Other Place" });
    await lead();
    const created = { type: "EVENT", event: "lead.created" };
    const [everywhere, here, foreign] = [
      await enabled(created),
      await enabled(created, { projectId: world.project.id }),
      await enabled(created, { organizationId: world.summit.id }, world.olga),
    ];
    const first = await lead();
    const second = await lead({ projectId: other.id });
    await caughtUp();
    await act("disableWorkflow", everywhere);
    await lead();
    await caughtUp();
    expect(await executions(everywhere)).toMatchObject(
      [first, second].map((subject_id) => ({
        subject_id,
        status: "PENDING",
        trigger_type: "EVENT",
        event: "lead.created",
        depth: 0,
        error: null,
      })),
    );
    expect((await executions(here)).map((x) => x.subject_id)).toEqual([
      first,
      expect.not.stringMatching(second),
    ]);
    expect(await executions(foreign)).toEqual([]);
    const { workflow } = await world.max.get(
      `query ($id: ID!) { workflow(id: $id) { lastRunAt nextRunAt triggerError } }`,
      { id: everywhere },
    );
    expect(workflow).toEqual({ lastRunAt: expect.any(String), nextRunAt: null, triggerError: null });
    // Events are processed again from the former position, despite an uncounted change meanwhile.
    await act("enableWorkflow", everywhere);
    await caughtUp();
    expect(await executions(everywhere)).toHaveLength(2);
  });

  test("start those whose filter selects the subject and whose conditions hold", async () => {
    const hot = await enabled(
      { type: "EVENT", event: "lead.status_changed", filter: { tags: ["vip", "friend"], isAgent: false } },
      {
        conditions: {
          and: [
            { "==": [{ var: "event.changes.status.1" }, "HOT"] },
            { ">": [{ var: "lead.budgetMax" }, 9] },
            { in: ["Harbour", { var: "project.title" }] },
            { "<": [{ secondsSince: { var: "lead.registeredAt" } }, 3600] },
            { "!": [{ var: "buyer" }] },
          ],
        },
      },
    );
    const [yes, poor, untagged, cold] = [
      await lead({ tags: ["vip"] }),
      await lead({ tags: ["vip"] }),
      await lead(),
      await lead({ tags: ["friend"] }),
    ];
    await update(yes, { budgetMax: "100000.00" });
    await update(untagged, { budgetMax: "100000.00" });
    await update(poor, { budgetMax: "8.00" });
    await update(cold, { budgetMax: "100000.00" });
    for (const id of [yes, poor, untagged]) await update(id, { status: "HOT" });
    await update(cold, { status: "COLD" });
    await caughtUp();
    expect((await executions(hot)).map((x) => x.subject_id)).toEqual([yes]);
  });

  test("of other records start workflows for the lead that they refer to", async () => {
    const noted = await enabled({ type: "EVENT", event: "lead_note.*" });
    const id = await lead();
    await world.owen.get(
      `mutation ($id: ID!) { createLeadNote(input: { leadId: $id, text: "Hello." }) { id } }`,
      { id },
    );
    await caughtUp();
    expect(await executions(noted)).toMatchObject([{ subject_id: id, event: "lead_note.created" }]);
  });

  test("a failing workflow does not block others, and its error is visible", async () => {
    const gone = await world.signUp("Gil Gone");
    await world.owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'MEMBER')",
      [world.harbour.id, gone.id],
    );
    const created = { type: "EVENT", event: "lead.created" };
    const [broken, ofGone, well] = [
      await enabled(created),
      await enabled({ ...created, filter: { assigneeId: gone.id } }),
      await enabled(created),
    ];
    await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
      gone.id,
    ]);
    await world.owner
      .query(`create function app_private.tg_test__fail() returns trigger language plpgsql volatile as $$
      begin raise exception 'broken'; end $$`);
    await world.owner.query(`create trigger _test before insert on app_public.workflow_executions
      for each row when (new.workflow_id = '${broken}') execute function app_private.tg_test__fail()`);
    const id = await lead();
    await caughtUp();
    await world.owner.query("drop trigger _test on app_public.workflow_executions");
    expect([await executions(broken), await executions(ofGone)]).toEqual([[], []]);
    expect(await executions(well)).toMatchObject([{ subject_id: id }]);
    const { workflow } = await world.owen.get(`query ($id: ID!) { workflow(id: $id) { triggerError } }`, {
      id: broken,
    });
    expect(workflow.triggerError).toMatch(/could not start it/);
  });

  test("count exactly once although the workers keep losing their connections; rolled-back ones never count", async () => {
    const id = await enabled({ type: "EVENT", event: "lead.created" }, { reentry: "ALWAYS" });
    for (let round = 0; round < 5; round++) {
      const client = await world.owner.connect();
      for (let i = 0; i < 20; i++) {
        await client.query("begin");
        await client.query("insert into app_public.leads (project_id, name) values ($1, $2)", [
          world.project.id,
          `Crowd ${round}.${i}`,
        ]);
        await client.query(i % 5 === 4 ? "rollback" : "commit");
      }
      client.release();
      await world.owner.query(
        "select pg_terminate_backend(pid) from pg_stat_activity where application_name = 'plat-triggers' and datname = current_database()",
      );
    }
    await caughtUp();
    const { rows } = await world.owner.query(
      `select count(*)::int as events, count(distinct e.subject_id)::int as leads, count(x.id)::int as executions, count(distinct x.trigger_event_id)::int as started
       from app_public.events e left join app_public.workflow_executions x on x.trigger_event_id = e.id and x.workflow_id = $1
       where e.name = 'lead.created' and e.data ->> 'name' like 'Crowd %'`,
      [id],
    );
    expect(rows).toEqual([{ events: 80, leads: 80, executions: 80, started: 80 }]);
  });
});

describe("bounds", () => {
  test("a workflow that starts itself is stopped after the sixth execution in a row, visibly", async () => {
    const id = await enabled({ type: "EVENT", event: "lead.updated" }, { reentry: "ALWAYS" });
    const subject = await lead();
    await update(subject, { company: "Loop 0" });
    // Executes the step of each execution, like the engine.
    let done = 0;
    await until(
      async () => {
        await caughtUp();
        const all = await executions(id);
        for (const { depth } of all.slice(done).filter((x) => x.status === "PENDING")) {
          const client = await world.owner.connect();
          await client.query("begin");
          await client.query("select set_config('plat.workflow_depth', $1, true)", [String(depth + 1)]);
          await client.query("update app_public.leads set company = $2 where id = $1", [
            subject,
            `Loop ${depth + 1}`,
          ]);
          await client.query("commit");
          client.release();
        }
        done = all.length;
        return all;
      },
      (all) => all.some((x) => x.status === "FAILED"),
    );
    await caughtUp();
    const all = await executions(id);
    expect(all.map((x) => [x.depth, x.status])).toEqual([
      ...[0, 1, 2, 3, 4, 5].map((depth) => [depth, "PENDING"]),
      [6, "FAILED"],
    ]);
    expect(all.at(-1)!.error).toMatch(/6 executions led to this one/);
    const { workflow } = await world.owen.get(
      `query ($id: ID!) { workflow(id: $id) { triggerError executions(status: [FAILED]) { error triggerEvent { name } } } }`,
      { id },
    );
    expect(workflow).toEqual({
      triggerError: expect.stringMatching(/UTC: It leads to itself/),
      executions: [{ error: expect.stringMatching(/Not started/), triggerEvent: { name: "lead.updated" } }],
    });
  });

  test("one that is started by its own executions ends too", async () => {
    const id = await enabled({ type: "EVENT", event: "workflow_execution.*" }, { reentry: "ALWAYS" });
    await enabled({ type: "EVENT", event: "lead.created" });
    await lead();
    await caughtUp();
    expect((await executions(id)).map((x) => [x.depth, x.status])).toEqual([
      ...[1, 2, 3, 4, 5].map((depth) => [depth, "PENDING"]),
      [6, "FAILED"],
    ]);
  });

  test("a workflow is started ten times an hour for one subject, and the eleventh leaves one failed execution", async () => {
    const id = await enabled({ type: "EVENT", event: "lead.updated" }, { reentry: "ALWAYS" });
    const [busy, calm] = [await lead(), await lead()];
    for (let i = 0; i < 13; i++) await update(busy, { company: `Company ${i}` });
    await update(calm, { company: "Calm" });
    await caughtUp();
    const all = await executions(id);
    expect(all.filter((x) => x.subject_id === busy).map((x) => x.status)).toEqual([
      ...Array(10).fill("PENDING"),
      "FAILED",
    ]);
    expect(all.find((x) => x.status === "FAILED")!.error).toMatch(/10 times within an hour/);
    expect(all.filter((x) => x.subject_id === calm)).toMatchObject([{ status: "PENDING" }]);
  });

  test("more than 10,000 starts a minute wait, visibly, without affecting other organizations", async () => {
    const id = await enabled({ type: "EVENT", event: "lead.created" });
    const minute = (amount: number, at: string) =>
      world.owner.query(
        `update app_private.workflow_streams set started = $2, minute = ${at} where organization_id = $1`,
        [world.harbour.id, amount],
      );
    await minute(9_998, "now() + interval '1 hour'");
    const leads = [await lead(), await lead(), await lead(), await lead()];
    await until(
      () => executions(id),
      (all) => all.length === 2,
    );
    const read = async () =>
      (await world.max.get(`query ($id: ID!) { workflow(id: $id) { triggerError } }`, { id })).workflow
        .triggerError;
    await until(read, (error) => error !== null || false).then((error) =>
      expect(error).toMatch(/10,000 starts of a minute/),
    );
    await minute(0, "now() - interval '1 minute'");
    await caughtUp();
    expect((await executions(id)).map((x) => x.subject_id)).toEqual(leads);
  });
});

test("an event from before a change of the trigger starts nothing afterwards", async () => {
  const subject = await lead();
  const id = await enabled({ type: "EVENT", event: "lead.created" });
  const client = await world.owner.connect();
  const startByEvent = () =>
    client.query(
      `with event as (select e.* from app_public.events e where e.subject_id = $2 and e.name = 'lead.created')
       select app_private.start_by_events(e.organization_id, e.sequence, jsonb_build_array(jsonb_build_object(
         'sequence', e.sequence, 'eventId', e.id, 'workflowId', $1::uuid, 'subjectId', $2::uuid)), '[]', 1)
       from event e`,
      [id, subject],
    );
  const started = async () =>
    (
      await client.query(
        "select count(*)::int as count from app_public.workflow_executions where workflow_id = $1",
        [id],
      )
    ).rows[0].count;
  try {
    for (const [fromSequence, count] of [
      ["from_sequence", 0],
      ["0", 1],
    ] as const) {
      // Holds the stream, as a worker does that has read the event before.
      await client.query("begin");
      await client.query(
        `update app_private.workflow_streams set holder = 1, held_until = now() + interval '1 minute' where organization_id = $1`,
        [world.harbour.id],
      );
      await client.query(
        `update app_private.workflow_triggers set from_sequence = ${fromSequence} where workflow_id = $1`,
        [id],
      );
      await startByEvent();
      expect(await started()).toBe(count);
      await client.query("rollback");
    }
  } finally {
    client.release();
  }
});

describe("the clock", () => {
  const read = async (id: string) =>
    (await world.max.get(`query ($id: ID!) { workflow(id: $id) { nextRunAt triggerError } }`, { id }))
      .workflow;
  const due = (id: string, ago = "3 days") =>
    world.owner.query(
      "update app_private.workflow_triggers set next_run_at = now() - $2::interval where workflow_id = $1",
      [id, ago],
    );
  const next = async (id: string) =>
    (
      await until(
        () => read(id),
        ({ nextRunAt }) => nextRunAt !== null && Date.parse(nextRunAt) > Date.now(),
      )
    ).nextRunAt as string;

  test("a schedule that is changed while its next time is computed is read again", async () => {
    const trigger = { type: "SCHEDULE", schedule: "45 9 * * *", timeZone: "Europe/Paris" };
    const id = await enabled(trigger);
    const client = await world.owner.connect();
    const noteNext = (schedule: string) =>
      client.query("select app_private.run_schedule($1, '2100-01-01', null, $2, $3)", [
        id,
        schedule,
        trigger.timeZone,
      ]);
    const nextYear = async () =>
      (
        await client.query(
          "select extract(year from next_run_at)::int as year from app_private.workflow_triggers where workflow_id = $1",
          [id],
        )
      ).rows[0].year;
    try {
      // Locks the row, which the engines skip.
      await client.query("begin");
      await client.query(
        "update app_private.workflow_triggers set next_run_at = null where workflow_id = $1",
        [id],
      );
      await noteNext("15 9 * * *");
      expect(await nextYear()).toBeNull();
      await noteNext("45 9 * * *");
      expect(await nextYear()).toBe(2100);
    } finally {
      await client.query("rollback");
      client.release();
    }
  });

  test("the next time is in the zone of the expression, of the project or of the organization", async () => {
    await world.owner.query("update app_public.projects set time_zone = 'America/Toronto' where id = $1", [
      world.project.id,
    ]);
    await world.owner.query("update app_public.organizations set time_zone = 'Asia/Tokyo' where id = $1", [
      world.harbour.id,
    ]);
    const hour = (iso: string, timeZone: string) =>
      new Date(iso).toLocaleTimeString("en-GB", { timeZone, hour: "2-digit", minute: "2-digit" });
    const trigger = { type: "SCHEDULE", schedule: "15 9 * * *" };
    expect(hour(await next(await enabled({ ...trigger, timeZone: "Europe/Paris" })), "Europe/Paris")).toBe(
      "09:15",
    );
    expect(hour(await next(await enabled(trigger, { projectId: world.project.id })), "America/Toronto")).toBe(
      "09:15",
    );
    const id = await enabled(trigger);
    expect(hour(await next(id), "Asia/Tokyo")).toBe("09:15");
    await world.owen.get(`mutation ($input: UpdateWorkflowInput!) { updateWorkflow(input: $input) { id } }`, {
      input: { id, trigger: { ...trigger, schedule: "45 9 * * *" } },
    });
    expect(
      hour(
        (
          await until(
            () => read(id),
            (w) => w.nextRunAt !== null,
          )
        ).nextRunAt,
        "Asia/Tokyo",
      ),
    ).toBe("09:45");
    await act("disableWorkflow", id);
    expect(await read(id)).toEqual({ nextRunAt: null, triggerError: null });
  });

  test("an hour that does not exist, or exists twice, fires once", () => {
    const toronto = (line: string, after: string) =>
      nextRun(line, "America/Toronto", new Date(after)).toISOString();
    // 2026-03-08 has no 02:30; 2026-11-01 has two 01:30.
    expect(toronto("30 2 * * *", "2026-03-08T05:00:00Z")).toBe("2026-03-08T07:30:00.000Z");
    expect(toronto("30 2 * * *", "2026-03-08T07:30:00Z")).toBe("2026-03-09T06:30:00.000Z");
    expect(toronto("30 1 * * *", "2026-11-01T04:00:00Z")).toBe("2026-11-01T05:30:00.000Z");
    expect(toronto("30 1 * * *", "2026-11-01T05:30:00Z")).toBe("2026-11-02T06:30:00.000Z");
    expect(toronto("0 9 * * *", "2026-03-07T14:00:00Z")).toBe("2026-03-08T13:00:00.000Z");
    expect(toronto("0 0 29 2 *", "2026-03-01T00:00:00Z")).toBe("2028-02-29T05:00:00.000Z");
  });

  test("an expression that was due for days starts once, for the subjects that match filter and conditions, in batches", async () => {
    const project = await createProject(world.owen, { organizationId: world.harbour.id, title: "Big Place" });
    await world.owner.query(
      `insert into app_public.leads (project_id, name, status, tags) select $1, 'Many ' || n, case when n % 10 = 0 then 'COLD' else 'WARM' end,
         case when n % 2 = 0 then '{even}' else '{odd}' end::text[] from generate_series(1, 1200) n`,
      [project.id],
    );
    const trigger = { type: "SCHEDULE", schedule: "0 4 * * *", filter: { status: ["WARM", "HOT"] } };
    const all = await enabled(trigger, { projectId: project.id, reentry: "NEVER" });
    const even = await enabled(trigger, {
      projectId: project.id,
      conditions: { in: ["even", { var: "subject.tags" }] },
    });
    await next(all);
    await next(even);
    await due(all);
    await due(even);
    expect(Date.parse(await next(all))).toBeLessThan(Date.now() + 86_400_000);
    const count = async (id: string) => (await executions(id)).length;
    await until(
      () => count(all),
      (amount) => amount >= 1080,
    );
    await until(
      () => count(even),
      (amount) => amount >= 480,
    );
    const idle = async () => (await world.owner.query("select from app_private.workflow_runs")).rowCount;
    await until(idle, (runs) => runs === 0);
    expect([await count(all), await count(even)]).toEqual([1080, 480]);
    expect(await executions(even).then(([first]) => first)).toMatchObject({
      trigger_type: "SCHEDULE",
      event: null,
      depth: 0,
    });
    // The next run skips those that have completed or are running.
    await due(all, "1 minute");
    await next(all);
    await until(idle, (runs) => runs === 0);
    expect(await count(all)).toBe(1080);
  });

  test("a run is skipped while the previous one is running, and cancelled when the workflow is disabled", async () => {
    const id = await enabled({ type: "SCHEDULE", schedule: "0 4 * * *" }, { projectId: world.project.id });
    await next(id);
    // Prevents starts in this hour.
    await world.owner.query(
      "update app_private.workflow_streams set started = 10000, minute = now() + interval '1 hour' where organization_id = $1",
      [world.harbour.id],
    );
    await due(id);
    await next(id);
    await due(id, "1 minute");
    expect(
      await until(
        () => read(id),
        (w) => w.triggerError !== null,
      ),
    ).toMatchObject({ triggerError: expect.stringMatching(/run before was not over/) });
    await act("disableWorkflow", id);
    expect((await world.owner.query("select from app_private.workflow_runs")).rowCount).toBe(0);
    await world.owner.query(
      "update app_private.workflow_streams set started = 0, minute = now() where organization_id = $1",
      [world.harbour.id],
    );
    expect(await executions(id)).toEqual([]);
  });
});

test("a workflow with executions cannot be deleted", async () => {
  const id = await enabled({ type: "EVENT", event: "lead.created" });
  await lead();
  await caughtUp();
  expect(
    await world.owen.refused(`mutation ($id: ID!) { deleteWorkflow(input: { id: $id }) { deleted } }`, {
      id,
    }),
  ).toMatchObject({ code: "CONFLICT" });
});
