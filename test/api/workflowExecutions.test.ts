/**
 * Permissions for executions of workflows, refused transitions, and permissions for batches. No worker runs here:
 * test/workflows tests the steps.
 *
 * owner, admin and member are of Harbour Homes, whose project Quiet Quay is in the lead mode PRIVATE; the seller and the builder
 * are members of organizations affiliated with Harbour View; the outsider owns Summit Sales.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import type { Person } from "../harness/api.ts";
import { ask, readById, type Operation, outcomes, readMatrix } from "../harness/matrix.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";
import { mutationOf } from "../harness/records.ts";
import { createWorkflow } from "../workflows/world.ts";

const matrix = `
                             | owner     | admin     | member    | seller    | builder   | outsider  | anonymous
execution, open lead         | yes       | yes       | yes       | null      | null      | null      | UNAUTH
execution, the member's lead | yes       | yes       | yes       | null      | null      | null      | UNAUTH
execution, another's lead    | yes       | yes       | null      | null      | null      | null      | UNAUTH
execution of a unit          | yes       | yes       | yes       | null      | null      | null      | UNAUTH
workflow.executions          | 4         | 4         | 3         | hidden    | hidden    | hidden    | UNAUTH
workflow.counts              | yes       | yes       | yes       | hidden    | hidden    | hidden    | UNAUTH
lead.workflowExecutions      | 1         | 1         | 1         | hidden    | hidden    | hidden    | UNAUTH
lead.., the seller's own     | 1         | 1         | 1         | none      | hidden    | hidden    | UNAUTH
event.subject                | yes       | yes       | hidden    | hidden    | hidden    | hidden    | UNAUTH
create, open lead            | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
create, another's lead       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
create, foreign lead         | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
batch                        | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
batch, another's lead        | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
pause                        | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
pause, another's lead        | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
resume                       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
cancel                       | yes       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
cancel, another's lead       | yes       | yes       | NOT_FOUND | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
cancel all                   | yes       | yes       | FORBIDDEN | NOT_FOUND | NOT_FOUND | NOT_FOUND | UNAUTH
`;

let world: Portfolio;
let people: Record<string, Person>;
let workflow: string;
let unit: string;

const sql = async (text: string, values: unknown[] = []): Promise<any[]> =>
  (await world.owner.query(text, values)).rows;

/** A new execution in a state that only the engine can cause. */
async function execution(subjectId: string, status = "PENDING", workflowId = workflow): Promise<string> {
  const [row] = await sql(
    "select app_private.start_workflow_executions(w, array[$2::uuid], 'MANUAL') as id from app_public.workflows w where w.id = $1",
    [workflowId, subjectId],
  );
  const way: Record<string, string[]> = {
    PENDING: [],
    RUNNING: ["RUNNING"],
    PAUSED: ["RUNNING", "PAUSED"],
    COMPLETED: ["RUNNING", "COMPLETED"],
    FAILED: ["RUNNING", "FAILED"],
    CANCELLED: ["CANCELLED"],
  };
  const client = await world.owner.connect();
  await client.query("begin; set local plat.service = 'on'");
  for (const step of way[status]!)
    await client.query("update app_public.workflow_executions set status = $2 where id = $1", [row.id, step]);
  await client.query("commit");
  client.release();
  return row.id;
}

beforeAll(async () => {
  world = await startPortfolio();
  people = cast(world);
  workflow = await createWorkflow(world, [{ type: "ADD_TAG", config: { tag: "seen" } }], {
    reentry: "ALWAYS",
  });
  [{ id: unit }] = (await sql(
    "insert into app_public.units (project_id, title, number, status, price) values ($1, 'Home', '1', 'AVAILABLE', 400000) returning id",
    [world.project.id],
  )) as [{ id: string }];
});
afterAll(() => world?.stop());

const short: Record<string, string> = { UNAUTHENTICATED: "UNAUTH" };
const create = mutationOf("createWorkflowExecution", "{ __typename }");
const batch = mutationOf("batchWorkflow", "{ __typename }");
const pause = mutationOf("pauseWorkflowExecution", "{ __typename }");
const resume = mutationOf("resumeWorkflowExecution", "{ __typename }");
const cancel = mutationOf("cancelWorkflowExecution", "{ __typename }");
const cancelAll = mutationOf("cancelWorkflowExecutions", "{ __typename }");

test("permissions", async () => {
  const { leads } = world;
  const houses = await createWorkflow(world, [{ type: "CREATE_TASK", config: { title: "Look" } }], {
    subjectType: "UNIT",
    reentry: "ALWAYS",
  });
  const listed = await createWorkflow(world, [{ type: "STOP" }], { reentry: "ALWAYS" });
  const known = {
    open: await execution(leads.open.id, "PENDING", listed),
    sams: await execution(leads.sams.id, "PENDING", listed),
    maxs: await execution(leads.maxs.id, "PENDING", listed),
    mias: await execution(leads.mias.id, "PENDING", listed),
    unit: await execution(unit, "PENDING", houses),
  };
  const [event] = await sql("select id from app_public.events where subject_id = $1", [known.mias]);
  const fresh = (lead: { id: string }, status?: string) => async () => ({
    input: { id: await execution(lead.id, status) },
  });
  const attempts: Record<string, Operation> = {
    "execution, open lead": readById("workflowExecution", known.open),
    "execution, the member's lead": readById("workflowExecution", known.maxs),
    "execution, another's lead": readById("workflowExecution", known.mias),
    "execution of a unit": readById("workflowExecution", known.unit),
    "workflow.executions": readById("workflow", listed, "executions { id }"),
    "workflow.counts": readById("workflow", listed, "counts"),
    "lead.workflowExecutions": readById("lead", leads.open.id, "workflowExecutions { id }"),
    "lead.., the seller's own": readById("lead", leads.sams.id, "workflowExecutions { id }"),
    "event.subject": readById("event", event.id, "subject { ... on WorkflowExecution { id } }"),
    "create, open lead": ask(create, { input: { workflowId: workflow, subjectId: leads.open.id } }),
    "create, another's lead": ask(create, { input: { workflowId: workflow, subjectId: leads.mias.id } }),
    "create, foreign lead": ask(create, { input: { workflowId: workflow, subjectId: leads.foreign.id } }),
    batch: ask(batch, { input: { id: workflow, leadsFilter: { projectIds: [world.project.slug] } } }),
    "batch, another's lead": ask(batch, { input: { id: workflow, subjectIds: [leads.mias.id] } }),
    pause: ask(pause, fresh(leads.open, "RUNNING")),
    "pause, another's lead": ask(pause, fresh(leads.mias, "RUNNING")),
    resume: ask(resume, fresh(leads.open, "PAUSED")),
    cancel: ask(cancel, fresh(leads.open)),
    "cancel, another's lead": ask(cancel, fresh(leads.mias)),
    "cancel all": ask(cancelAll, { input: { workflowId: workflow } }),
  };
  const { rows } = readMatrix(matrix);
  const found = [];
  for (const { operation } of rows)
    found.push({ operation, expected: await outcomes(people, attempts[operation]!, short) });
  expect(found).toEqual(rows);
});

test("an unknown state transition is refused", async () => {
  const { owen, leads } = world;
  const refused: Record<string, unknown> = {};
  for (const [name, document] of Object.entries({ pause, resume, cancel }))
    for (const from of ["PENDING", "RUNNING", "PAUSED", "COMPLETED", "FAILED", "CANCELLED"]) {
      const { errors } = await owen.ask(document, { input: { id: await execution(leads.open.id, from) } });
      const [error] = errors ?? [];
      if (!error) continue;
      const { code, to, allowedTransitions } = error.extensions;
      expect([name, from, error.extensions.from]).toEqual([name, from, from]);
      refused[`${name} ${from}`] = `${code} ${to} ${allowedTransitions}`;
    }
  expect(refused).toEqual({
    "pause PENDING": "INVALID_TRANSITION PAUSED CANCELLED",
    "pause PAUSED": "INVALID_TRANSITION PAUSED CANCELLED,RUNNING",
    "pause COMPLETED": "INVALID_TRANSITION PAUSED ",
    "pause FAILED": "INVALID_TRANSITION PAUSED ",
    "pause CANCELLED": "INVALID_TRANSITION PAUSED ",
    "resume PENDING": "INVALID_TRANSITION RUNNING CANCELLED",
    "resume RUNNING": "INVALID_TRANSITION RUNNING CANCELLED,PAUSED",
    "resume COMPLETED": "INVALID_TRANSITION RUNNING ",
    "resume FAILED": "INVALID_TRANSITION RUNNING ",
    "resume CANCELLED": "INVALID_TRANSITION RUNNING ",
    "cancel COMPLETED": "INVALID_TRANSITION CANCELLED ",
    "cancel FAILED": "INVALID_TRANSITION CANCELLED ",
    "cancel CANCELLED": "INVALID_TRANSITION CANCELLED ",
  });
}, 30_000);

test("invalid input is refused with its path", async () => {
  const { owen, leads, project, quiet } = world;
  const draft = (
    await owen.get("mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id } }", {
      input: {
        organizationId: world.harbour.id,
        name: "Draft",
        subjectType: "LEAD",
        trigger: { type: "BATCH" },
        steps: [{ type: "STOP" }],
      },
    })
  ).createWorkflow.id;
  const ofProject = await createWorkflow(world, [{ type: "STOP" }], { projectId: project.id });
  const units = await createWorkflow(world, [{ type: "CREATE_TASK", config: { title: "Look" } }], {
    subjectType: "UNIT",
  });
  const once = await createWorkflow(world, [{ type: "STOP" }], { reentry: "NEVER" });
  const running = await execution(leads.open.id, "RUNNING");
  const over = await execution(leads.open.id, "COMPLETED", once);
  const live = await execution(leads.open.id, "PENDING", ofProject);
  const cases: [string, Record<string, unknown>, string, string | undefined][] = [
    [create, { workflowId: draft, subjectId: leads.open.id }, "CONFLICT", "workflowId"],
    [create, { workflowId: randomUUID(), subjectId: leads.open.id }, "NOT_FOUND", "workflowId"],
    [create, { workflowId: "mine", subjectId: leads.open.id }, "BAD_USER_INPUT", "workflowId"],
    [create, { workflowId: workflow, subjectId: randomUUID() }, "NOT_FOUND", "subjectId"],
    [create, { workflowId: workflow, subjectId: unit }, "NOT_FOUND", "subjectId"],
    [create, { workflowId: workflow, subjectId: leads.open.id, context: [1] }, "BAD_USER_INPUT", "context"],
    [
      create,
      { workflowId: workflow, subjectId: leads.open.id, context: { text: "x".repeat(20_000) } },
      "BAD_USER_INPUT",
      "context",
    ],
    [create, { workflowId: ofProject, subjectId: leads.maxs.id }, "BAD_USER_INPUT", "subjectId"],
    [create, { workflowId: ofProject, subjectId: leads.open.id }, "CONFLICT", "subjectId"],
    [create, { workflowId: once, subjectId: leads.open.id }, "CONFLICT", "subjectId"],
    [batch, { id: workflow }, "BAD_USER_INPUT", "subjectIds"],
    [batch, { id: workflow, subjectIds: [leads.open.id], leadsFilter: {} }, "BAD_USER_INPUT", "subjectIds"],
    [batch, { id: workflow, subjectIds: [leads.open.id, leads.foreign.id] }, "NOT_FOUND", "subjectIds"],
    [batch, { id: workflow, subjectIds: [leads.open.id, "lead"] }, "BAD_USER_INPUT", "subjectIds"],
    [
      batch,
      { id: workflow, leadsFilter: { includeDeleted: true } },
      "BAD_USER_INPUT",
      "leadsFilter.includeDeleted",
    ],
    [batch, { id: units, leadsFilter: {} }, "BAD_USER_INPUT", "leadsFilter"],
    [batch, { id: draft, leadsFilter: {} }, "CONFLICT", "id"],
    [pause, { id: running, resumeAt: "2020-01-01T00:00:00Z" }, "BAD_USER_INPUT", "resumeAt"],
    [pause, { id: running, reason: "x".repeat(20_001) }, "BAD_USER_INPUT", "reason"],
    [pause, { id: randomUUID() }, "NOT_FOUND", "id"],
    [cancelAll, { workflowId: randomUUID() }, "NOT_FOUND", "workflowId"],
  ];
  for (const [document, input, code, field] of cases) {
    const refusal = await owen.refused(document, { input });
    expect([document, input, refusal.code, refusal.field]).toEqual([document, input, code, field]);
  }
  expect(
    await owen.refused(create, { input: { workflowId: ofProject, subjectId: leads.open.id } }),
  ).toMatchObject({ existingId: live });
  expect(await owen.refused(create, { input: { workflowId: once, subjectId: leads.open.id } })).toMatchObject(
    { existingId: over },
  );

  await owen.get(`mutation { updateProject(input: { id: "${quiet.id}", status: ARCHIVED }) { id } }`);
  expect(
    (await owen.refused(create, { input: { workflowId: workflow, subjectId: leads.maxs.id } })).code,
  ).toBe("PROJECT_ARCHIVED");
  await owen.get(`mutation { updateProject(input: { id: "${quiet.id}", status: SELLING }) { id } }`);
}, 30_000);

test("a batch changes the matching executions that allow the transition, once", async () => {
  const { owen, project, leads } = world;
  await sql(
    `insert into app_public.leads (project_id, name, email, status, tags, company) select $1, 'Bulk ' || n, 'bulk' || n || '@example.com', case when n % 2 = 0 then 'WARM' else 'NEW' end,
     case when n % 5 = 0 then '{gold}' else '{}' end::text[], 'Bulk' from generate_series(1, 40) n`,
    [project.id],
  );
  const id = await createWorkflow(world, [{ type: "STOP" }], { reentry: "NEVER" });
  const counted = async (leadsFilter: Record<string, unknown>, workflowId = id) => {
    const { batchWorkflow } = await owen.get(
      "mutation ($input: BatchWorkflowInput!) { batchWorkflow(input: $input) { counts } }",
      {
        input: { id: workflowId, leadsFilter },
      },
    );
    return batchWorkflow.counts.PENDING;
  };
  expect(await counted({ query: "Bulk", status: ["WARM"] })).toBe(20);
  expect(await counted({ query: "Bulk", status: ["WARM"] })).toBe(20);
  expect(await counted({ email: "BULK1@example.com" })).toBe(21);
  expect(await counted({ query: "Bulk" })).toBe(40);
  const rows = await sql(
    "select count(distinct batch_id)::int as batches, count(distinct trigger_type)::int as ways, min(trigger_type::text) as way from app_public.workflow_executions where workflow_id = $1",
    [id],
  );
  expect(rows).toEqual([{ batches: 3, ways: 1, way: "BATCH" }]);
  expect(
    await sql(
      "select matched, started from app_private.workflow_batches where workflow_id = $1 order by id",
      [id],
    ),
  ).toEqual([
    { matched: 20, started: 20 },
    { matched: 20, started: 0 },
    { matched: 1, started: 1 },
    { matched: 40, started: 19 },
  ]);
  // Every field of the filter selects the same as in the list.
  const filters: Record<string, unknown>[] = [
    { tags: ["gold", "none"] },
    { unassigned: true },
    { assigneeIds: [world.sam.id, world.max.id] },
    { projectIds: [project.slug] },
    { origin: ["API"], isAgent: false },
    { hasOpenTask: false, phone: "555" },
    { registeredAt: { from: "2020-01-01T00:00:00Z" }, updatedAt: { to: "2099-01-01T00:00:00Z" } },
    { lastInteractionAt: { from: "2020-01-01T00:00:00Z" } },
    { leadSourceIds: [] },
    {},
  ];
  for (const filter of filters) {
    const fresh = await createWorkflow(world, [{ type: "STOP" }]);
    const { leads: listed } = await owen.get(
      "query ($filter: LeadsFilter) { leads(filter: $filter, first: 1000) { id } }",
      { filter },
    );
    expect([filter, await counted(filter, fresh)]).toEqual([filter, listed.length]);
  }
  expect(leads).toBeDefined();
}, 40_000);

test("lists of executions take as many statements for many as for one", async () => {
  const { owen, harbour } = world;
  const document = `query ($id: ID!, $first: Int) { organization(id: $id) { workflows(first: $first) { id counts executions(first: $first, status: [PENDING, CANCELLED]) {
    id subject { __typename ... on Lead { name } ... on Buyer { fullName } } startedBy { id } triggerEvent { id } workflow { name }
    steps { status step { type } } allowedTransitions { to } } } } }`;
  const counts = [];
  for (const first of [1, 50]) {
    const { count, result } = await world.statements(() => owen.get(document, { id: harbour.id, first }));
    counts.push(count);
    expect(result.organization.workflows.length).toBeGreaterThan(0);
  }
  expect(counts[1]).toBe(counts[0]);
});

test("the database prevents concurrent executions of a workflow for one subject, and repeated step runs", async () => {
  const { leads } = world;
  const id = await createWorkflow(world, [{ type: "STOP" }]);
  const first = await execution(leads.sams.id, "PENDING", id);
  const copy = (columns: string) =>
    sql(
      `insert into app_public.workflow_executions (organization_id, project_id, workflow_id, steps_revision, reentry, subject_type, subject_id, trigger_type)
       select organization_id, project_id, workflow_id, steps_revision, ${columns}, subject_type, subject_id, trigger_type from app_public.workflow_executions where id = $1`,
      [first],
    );
  await expect(copy("reentry")).rejects.toMatchObject({ constraint: "workflow_executions_live" });
  await copy("'ALWAYS'");
  const run = () =>
    sql(
      "insert into app_public.workflow_step_runs (execution_id, step_id, sequence, attempt, status) select $1, s.id, 1, 1, 'SUCCEEDED' from app_public.workflow_steps s where s.workflow_id = $2",
      [first, id],
    );
  await run();
  await expect(run()).rejects.toMatchObject({ constraint: "workflow_step_runs_once" });
  // Of forty concurrent requests, one starts it.
  const workflowId = await createWorkflow(world, [{ type: "STOP" }]);
  const answers = await Promise.all(
    Array.from({ length: 40 }, () =>
      world.owen.ask(create, { input: { workflowId, subjectId: leads.sams.id } }),
    ),
  );
  expect(answers.filter(({ errors }) => !errors)).toHaveLength(1);
  expect(new Set(answers.flatMap(({ errors }) => errors?.map((e) => e.extensions.code) ?? []))).toEqual(
    new Set(["CONFLICT"]),
  );
}, 30_000);
