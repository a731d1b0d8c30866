/**
 * Permissions for workflows, and which definitions are refused, with the path of the fault. How triggers
 * start them: test/workflows/triggers.test.ts.
 */
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { repository } from "../../src/docs/generated.ts";
import type { Person } from "../harness/api.ts";
import { signUpBuyer } from "../harness/deals.ts";
import { ask, type Variables, outcomes } from "../harness/matrix.ts";
import { cast, type Portfolio, startPortfolio } from "../harness/portfolio.ts";

let world: Portfolio;
let people: Record<string, Person>;

beforeAll(async () => {
  world = await startPortfolio();
  people = cast(world, { buyer: (await signUpBuyer(world)).person });
});
afterAll(() => world.stop());

const creation = `mutation ($input: CreateWorkflowInput!) { createWorkflow(input: $input) { id version stepsRevision } }`;
const change = `mutation ($input: UpdateWorkflowInput!) { updateWorkflow(input: $input) { id version stepsRevision } }`;
const definition = (rest: Record<string, unknown> = {}): Record<string, unknown> => ({
  organizationId: world.harbour.id,
  name: "Welcome",
  subjectType: "LEAD",
  trigger: { type: "EVENT", event: "lead.created" },
  steps: [{ type: "ADD_TAG", config: { tag: "new" } }],
  ...rest,
});
const create = async (rest?: Record<string, unknown>): Promise<string> =>
  (await world.owen.get(creation, { input: definition(rest) })).createWorkflow.id;
const act = (operation: string) =>
  `mutation ($id: ID!) { ${operation}(input: { id: $id }) { ${operation === "deleteWorkflow" ? "deleted" : "status enabled enabledAt disabledAt allowedTransitions { to }"} } }`;

const tried = async (document: string, variables: Variables) =>
  Object.values(await outcomes(people, ask(document, variables))).join(" ");

describe("permissions: owner, admin, member, seller, builder, buyer, outsider, anonymous", () => {
  const managed = "yes yes FORBIDDEN NOT_FOUND NOT_FOUND NOT_FOUND NOT_FOUND UNAUTHENTICATED";

  test("create, in an organization with a public project", async () => {
    expect(await tried(creation, () => ({ input: definition() }))).toBe(
      "yes yes FORBIDDEN FORBIDDEN FORBIDDEN FORBIDDEN FORBIDDEN UNAUTHENTICATED",
    );
  });

  test("update", async () => {
    const id = await create();
    expect(await tried(change, () => ({ input: { id, name: "Hello" } }))).toBe(managed);
  });

  test("enable, disable, archive, delete", async () => {
    const inStatus = async (...operations: string[]) => {
      const id = await create();
      for (const operation of operations) await world.owen.get(act(operation), { id });
      return { id };
    };
    expect(await tried(act("enableWorkflow"), () => inStatus())).toBe(managed);
    expect(await tried(act("disableWorkflow"), () => inStatus("enableWorkflow"))).toBe(managed);
    expect(await tried(act("archiveWorkflow"), () => inStatus("enableWorkflow", "disableWorkflow"))).toBe(
      managed,
    );
    expect(await tried(act("deleteWorkflow"), () => inStatus())).toBe(managed);
  });

  test("only members can read, by any path", async () => {
    const id = await create({ projectId: world.project.slug });
    const { workflow } = await world.max.get(`query ($id: ID!) { workflow(id: $id) { steps { id } } }`, {
      id,
    });
    const query = `query ($id: ID!, $step: ID!, $organization: ID!) {
      workflow(id: $id) { name }
      workflowStep(id: $step) { type }
      organization(id: $organization) { workflows(first: 1, filter: { status: [DRAFT] }) { id } }
      events(filter: { subjectId: [$id] }) { name } }`;
    for (const [name, person] of Object.entries(people)) {
      const variables = { id, step: workflow.steps[0].id, organization: world.harbour.id };
      const answer = await person.sees(query.replace("[$id]", "$id"), variables);
      const sees = ["owner", "admin", "member"].includes(name);
      expect([
        name,
        answer.workflow !== null,
        answer.workflowStep !== null,
        (answer.events ?? []).length > 0,
      ]).toEqual([name, sees, sees, sees]);
      expect([name, answer.organization?.workflows?.length ?? null]).toEqual([name, sees ? 1 : null]);
    }
  });

  test("SQL of the API cannot bypass the operations", async () => {
    const { rows } = await world.owner.query(
      `select has_table_privilege('plat_user', 'app_public.workflow_steps', 'insert, update, delete') as steps,
        array(select cmd from pg_policies where tablename in ('workflows', 'workflow_steps') order by cmd) as policies`,
    );
    expect(rows).toEqual([{ steps: false, policies: ["DELETE", "SELECT", "SELECT"] }]);
  });
});

test("a workflow is a draft, can be enabled, disabled and archived, with no other transitions", async () => {
  const id = await create();
  expect(await world.owen.refused(act("disableWorkflow"), { id })).toMatchObject({
    code: "INVALID_TRANSITION",
    from: "DRAFT",
    to: "DISABLED",
    allowedTransitions: ["ENABLED"],
  });
  const { enableWorkflow: enabled } = await world.owen.get(act("enableWorkflow"), { id });
  expect(enabled).toEqual({
    status: "ENABLED",
    enabled: true,
    enabledAt: expect.any(String),
    disabledAt: null,
    allowedTransitions: [{ to: "DISABLED" }],
  });
  expect(await world.owen.refused(act("enableWorkflow"), { id })).toMatchObject({
    code: "INVALID_TRANSITION",
  });
  expect(await world.owen.refused(act("archiveWorkflow"), { id })).toMatchObject({
    code: "INVALID_TRANSITION",
  });
  await world.owen.get(act("disableWorkflow"), { id });
  await world.owen.get(act("archiveWorkflow"), { id });
  expect(await world.owen.refused(act("enableWorkflow"), { id })).toMatchObject({
    code: "INVALID_TRANSITION",
  });
  expect(await world.owen.refused(change, { input: { id, name: "Late" } })).toMatchObject({
    code: "CONFLICT",
  });
  const { workflow } = await world.owen.get(`query ($id: ID!) { workflow(id: $id) { events { name } } }`, {
    id,
  });
  expect(workflow.events.map((event: { name: string }) => event.name)).toEqual([
    "workflow.archived",
    "workflow.disabled",
    "workflow.enabled",
    "workflow.created",
  ]);
});

test("new steps create a revision; omitted fields are unchanged, null clears, a lost update is refused", async () => {
  const id = await create({ description: "Say hello.", conditions: { "!!": [{ var: "lead.email" }] } });
  const read = `query ($id: ID!) { workflow(id: $id) { version stepsRevision description conditions reentry triggerType
    createdBy { id } project { id } steps { sequence type name config waitSeconds onError } } }`;
  const before = (await world.owen.get(read, { id })).workflow;
  expect(before).toMatchObject({
    version: 1,
    stepsRevision: 1,
    reentry: "AFTER_COMPLETION",
    triggerType: "EVENT",
    createdBy: { id: world.owen.id },
  });
  const { updateWorkflow: changed } = await world.owen.get(change, {
    input: {
      id,
      expectedVersion: 1,
      conditions: null,
      steps: [
        { type: "WAIT", waitSeconds: 60, name: " A minute " },
        {
          type: "CREATE_TASK",
          config: { title: "Call {{ lead.name | upcase }}", assignee: null },
          onError: "SKIP",
        },
      ],
    },
  });
  expect(changed).toEqual({ id, version: 2, stepsRevision: 2 });
  expect((await world.owen.get(read, { id })).workflow).toMatchObject({
    description: "Say hello.",
    conditions: null,
    steps: [
      { sequence: 1, type: "WAIT", name: "A minute", config: {}, waitSeconds: 60, onError: "RETRY" },
      {
        sequence: 2,
        type: "CREATE_TASK",
        config: { title: "Call {{ lead.name | upcase }}" },
        onError: "SKIP",
      },
    ],
  });
  expect(await world.owen.refused(change, { input: { id, expectedVersion: 1, name: "Late" } })).toMatchObject(
    {
      code: "VERSION_MISMATCH",
      currentVersion: 2,
    },
  );
  const { rows } = await world.owner.query(
    "select revision, sequence, type from app_public.workflow_steps where workflow_id = $1 order by revision, sequence",
    [id],
  );
  expect(rows.map((row) => `${row.revision}.${row.sequence} ${row.type}`)).toEqual([
    "1.1 ADD_TAG",
    "2.1 WAIT",
    "2.2 CREATE_TASK",
  ]);
  await expect(
    world.owner.query("update app_public.workflow_steps set config = '{}' where workflow_id = $1", [id]),
  ).rejects.toThrow(/never changed/);
});

describe("an invalid definition is refused with its path", () => {
  const step = (type: string, config: Record<string, unknown> = {}, rest: Record<string, unknown> = {}) => ({
    steps: [{ type, config, ...rest }],
  });
  const mail = (rest: Record<string, unknown>) =>
    step("SEND_EMAIL", { subject: "Hello", body: "Hello", ...rest });
  const schedule = (rest: Record<string, unknown>) => ({
    trigger: { type: "SCHEDULE", schedule: "0 9 * * *", ...rest },
  });
  const hook = "https://8.8.8.8/hook";
  const nested = (depth: number): unknown => (depth === 0 ? true : { "!": [nested(depth - 1)] });

  test.each<[path: string, message: RegExp, rest: Record<string, unknown>]>([
    ["trigger", /must be an object/, { trigger: [] }],
    ["trigger.type", /must be one of .*EVENT/, { trigger: { type: "HOURLY" } }],
    ["trigger.type", /must be one of .*EVENT/, { trigger: {} }],
    [
      "trigger.schedule",
      /of type EVENT has no such field/,
      { trigger: { type: "EVENT", event: "lead.created", schedule: "0 9 * * *" } },
    ],
    ["trigger.event", /no event lead\.sneezed/, { trigger: { type: "EVENT", event: "lead.sneezed" } }],
    ["trigger.event", /no event \*/, { trigger: { type: "EVENT", event: "*" } }],
    ["trigger.event", /no event null/, { trigger: { type: "EVENT" } }],
    ["trigger.event", /nothing of the lead/, { trigger: { type: "EVENT", event: "unit.price_changed" } }],
    ["trigger.schedule", /must be a cron expression/, { trigger: { type: "SCHEDULE" } }],
    ["trigger.schedule", /never fires/, schedule({ schedule: "0 0 30 2 *" })],
    ["trigger.schedule", /five fields/, schedule({ schedule: "* * * * * *" })],
    ["trigger.schedule", /five fields/, schedule({ schedule: "@daily" })],
    ["trigger.schedule", /got value 60/, schedule({ schedule: "60 * * * *" })],
    ["trigger.timeZone", /time zone is unknown/, schedule({ timeZone: "Toronto/America" })],
    ["trigger.filter", /must be an object/, schedule({ filter: ["NEW"] })],
    ["trigger.filter.mood", /cannot be used to select/, schedule({ filter: { mood: "good" } })],
    [
      "trigger.filter.status[1]",
      /no value|wrong form|value/i,
      schedule({ filter: { status: ["NEW", "OLD"] } }),
    ],
    ["conditions", /must be a condition in JSON Logic/, { conditions: ["and"] }],
    ["conditions", /exactly one key/, { conditions: { "==": [1, 1], "!=": [1, 2] } }],
    ["conditions.regex", /no such operator/, { conditions: { regex: ["a", "b"] } }],
    ["conditions.and[1].reduce", /no such operator/, { conditions: { and: [true, { reduce: [] }] } }],
    ["conditions.==", /takes 2 arguments/, { conditions: { "==": [1] } }],
    [
      "conditions.and[1].==[0].var",
      /lead has no field nickname/,
      { conditions: { and: [true, { "==": [{ var: "lead.nickname" }, 1] }] } },
    ],
    ["conditions.!.var", /no variable secrets/, { conditions: { "!": { var: "secrets.key" } } }],
    ["conditions.!!.var", /no such variable/, { conditions: { "!!": { var: "context.__proto__.x" } } }],
    ["conditions.!!.var", /must be a variable/, { conditions: { "!!": { var: [{ var: "lead.name" }] } } }],
    [
      "conditions.==[0].var",
      /only available in later steps/,
      { conditions: { "==": [{ var: "steps.1.x" }, 1] } },
    ],
    [
      "conditions.==[0].var",
      /record of lead\.created has no field/,
      { conditions: { "==": [{ var: "event.data.shoeSize" }, 1] } },
    ],
    [
      "conditions.==[0].var",
      /there is no event/,
      { trigger: { type: "MANUAL" }, conditions: { "==": [{ var: "event.name" }, 1] } },
    ],
    [`conditions${".![0]".repeat(20)}.![0]`, /at most 20 levels/, { conditions: nested(22) }],
    ["steps", /1 to 100 steps/, { steps: [] }],
    ["steps", /1 to 100 steps/, { steps: Array.from({ length: 101 }, () => ({ type: "STOP" })) }],
    ["steps[0].config", /must be an object/, { steps: [{ type: "STOP", config: "now" }] }],
    ["steps[0].config.colour", /SEND_EMAIL has no such field; it has to, memberId/, mail({ colour: "red" })],
    ["steps[0].config.subject", /is required/, step("SEND_EMAIL", { body: "Hello" })],
    ["steps[0].config.subject", /is required/, mail({ subject: null })],
    ["steps[0].config.subject", /at most 300/, mail({ subject: "x".repeat(301) })],
    ["steps[0].config.body", /must be a string/, mail({ body: 7 })],
    ["steps[0].config.body", /cannot be read.*not closed/, mail({ body: "Hello {{ lead.name" })],
    ["steps[0].config.body", /undefined filter: shout/, mail({ body: "{{ lead.name | shout }}" })],
    ["steps[0].config.body", /tag "include" not found/, mail({ body: "{% include '/etc/passwd' %}" })],
    ["steps[0].config.body", /no variable person/, mail({ body: "Hello {{ person.name }}" })],
    [
      "steps[0].config.body",
      /lead has no field shoeSize/,
      mail({ body: "{% if lead.shoeSize > 40 %}big{% endif %}" }),
    ],
    ["steps[0].config.body", /buyer has no field dob/, mail({ body: "{{ buyer.dob }}" })],
    ["steps[0].config.body", /named in full/, mail({ body: "{{ lead[context.field] }}" })],
    ["steps[0].config.body", /sequence of an earlier step/, mail({ body: "{{ steps[1].taskId }}" })],
    ["steps[0].config.address", /is required with to: ADDRESS/, mail({ to: "ADDRESS" })],
    ["steps[0].config.address", /only allowed with to: ADDRESS/, mail({ address: "ada@example.com" })],
    ["steps[0].config.address", /must be an email address/, mail({ to: "ADDRESS", address: "ada" })],
    ["steps[0].config.to", /must be one of PERSON/, mail({ to: "EVERYBODY" })],
    [
      "steps[0].config.to",
      /a unit has neither/,
      { subjectType: "UNIT", trigger: { type: "MANUAL" }, ...mail({}) },
    ],
    [
      "steps[0].config.memberId",
      /id of a member of the organization/,
      mail({ to: "MEMBER", memberId: "olga" }),
    ],
    [
      "steps[0].config.to",
      /must be one of PERSON, ASSIGNEE, MEMBER/,
      step("SEND_SMS", { to: "ADDRESS", body: "Hello" }),
    ],
    [
      "steps[0].config.memberId",
      /is required with to: MEMBER/,
      step("SEND_SMS", { to: "MEMBER", body: "Hello" }),
    ],
    ["steps[0].config.body", /is required/, step("SEND_SMS", {})],
    [
      "steps[0].config.body",
      /7 segments, and at most 6 are allowed/,
      step("SEND_SMS", { body: "a".repeat(919) }),
    ],
    [
      "steps[0].config.body",
      /7 segments, and at most 6 are allowed: .* such as an emoji/,
      step("SEND_SMS", { body: `${"a".repeat(402)}🏠{{ lead.name }}` }),
    ],
    [
      "steps[0].type",
      /the unit does not have/,
      { subjectType: "UNIT", trigger: { type: "MANUAL" }, ...step("SEND_SMS", { body: "Hello" }) },
    ],
    [
      "steps[0].type",
      /the unit does not have/,
      { subjectType: "UNIT", trigger: { type: "MANUAL" }, ...step("CREATE_NOTE", { text: "Hello" }) },
    ],
    [
      "steps[0].config.dueInSeconds",
      /whole number from 0 to/,
      step("CREATE_TASK", { title: "Call", dueInSeconds: 1.5 }),
    ],
    ["steps[0].config.pinned", /true or false/, step("CREATE_NOTE", { text: "Hello", pinned: "yes" })],
    ["steps[0].waitSeconds", /31,536,000 seconds/, step("WAIT", {}, { waitSeconds: -1 })],
    ["steps[0].waitSeconds", /31,536,000 seconds/, step("WAIT", {}, { waitSeconds: 0 })],
    ["steps[0].waitSeconds", /31,536,000 seconds/, step("WAIT", {}, { waitSeconds: 31_536_001 })],
    ["steps[0].waitSeconds", /either waitSeconds or config\.until/, step("WAIT")],
    ["steps[0].config.until", /is no time/, step("WAIT", { until: "lead.name" })],
    ["steps[0].config.until", /reservation has no field/, step("WAIT", { until: "reservation.endsAt" })],
    [
      "steps[0].config.event",
      /no event lead\.gone/,
      step("WAIT_FOR_EVENT", { event: "lead.gone", timeoutSeconds: 60 }),
    ],
    [
      "steps[0].config.timeoutSeconds",
      /whole number from 1/,
      step("WAIT_FOR_EVENT", { event: "lead.updated", timeoutSeconds: 0 }),
    ],
    [
      "steps[0].config.onTimeout",
      /CONTINUE, STOP or/,
      step("WAIT_FOR_EVENT", { event: "lead.updated", timeoutSeconds: 1, onTimeout: "JUMP" }),
    ],
    [
      "steps[0].config.conditions.==[0].var",
      /record of task\.updated has no field/,
      step("WAIT_FOR_EVENT", {
        event: "task.updated",
        timeoutSeconds: 1,
        conditions: { "==": [{ var: "event.data.budgetMin" }, 1] },
      }),
    ],
    [
      "steps[1].config.then",
      /would be a cycle/,
      { steps: [{ type: "STOP" }, { type: "BRANCH", config: { condition: { "!!": [1] }, then: 1 } }] },
    ],
    ["steps[0].config.else", /would be a cycle/, step("BRANCH", { condition: { "!!": [1] }, else: 1 })],
    [
      "steps[0].config.then",
      /no step 3; the last one is 1/,
      step("BRANCH", { condition: { "!!": [1] }, then: 3 }),
    ],
    [
      "steps[0].config.condition.var",
      /lead has no field/,
      step("BRANCH", { condition: { var: "lead.nope" } }),
    ],
    [
      "steps[0].config.field",
      /this field cannot be set; use one of address/,
      step("UPDATE_FIELD", { field: "organizationId", value: null }),
    ],
    ["steps[0].config.value", /is required/, step("UPDATE_FIELD", { field: "status" })],
    ["steps[0].config.value", /.+/, step("UPDATE_FIELD", { field: "status", value: "SLEEPY" })],
    ["steps[0].config.value", /cannot be null/, step("UPDATE_FIELD", { field: "name", value: null })],
    [
      "steps[0].config.value",
      /no such lead source/,
      step("UPDATE_FIELD", { field: "sourceId", value: "00000000-0000-0000-0000-000000000001" }),
    ],
    [
      "steps[0].config.record",
      /a unit has neither/,
      {
        subjectType: "UNIT",
        trigger: { type: "MANUAL" },
        ...step("UPDATE_FIELD", { record: "LEAD", field: "status", value: "HOT" }),
      },
    ],
    ["steps[0].config.url", /starts with https/, step("CALL_WEBHOOK", { url: "http://example.com" })],
    ["steps[0].config.url", /.+/, step("CALL_WEBHOOK", { url: "https://127.0.0.1/hook" })],
    ["steps[0].config.url", /.+/, step("CALL_WEBHOOK", { url: "https://169.254.169.254/latest" })],
    [
      "steps[0].config.body.a[1].b",
      /lead has no field/,
      step("CALL_WEBHOOK", { url: "https://8.8.8.8/hook", body: { a: [1, { b: "{{ lead.nope }}" }] } }),
    ],
    [
      "steps[0].config.memberIds[0]",
      /id of a member/,
      step("NOTIFY_TEAM", { to: "MEMBERS", memberIds: ["x"], message: "Hi" }),
    ],
    ["steps[0].name", /1 to 300/, step("STOP", {}, { name: "x".repeat(301) })],
    ["conditions", /at most 20,000 characters/, { conditions: { "==": ["x".repeat(20_001), 1] } }],
    [
      "conditions.!!.var",
      /default of a variable must be/,
      { conditions: { "!!": { var: ["lead.name", {}] } } },
    ],
    ["conditions.!!.var", /now is a time/, { conditions: { "!!": { var: "now.year" } } }],
    ["conditions.!!.var", /lead\.status has no/, { conditions: { "!!": { var: "lead.status.colour" } } }],
    [
      "steps[0].config.offsetSeconds",
      /only allowed with until/,
      step("WAIT", { offsetSeconds: 60 }, { waitSeconds: 60 }),
    ],
    [
      "steps[0].waitSeconds",
      /has config\.timeoutSeconds/,
      step("WAIT_FOR_EVENT", { event: "lead.updated", timeoutSeconds: 60 }, { waitSeconds: 60 }),
    ],
    ["steps[0].config.reason", /at most 300/, step("STOP", { reason: 7 })],
    ["steps[0].config.until", /must be a variable that is a time/, step("WAIT", { until: "lead" })],
    [
      "steps[0].config.memberIds",
      /must list 1 to 50/,
      step("NOTIFY_TEAM", { to: "MEMBERS", memberIds: [], message: "Hi" }),
    ],
    ["steps[0].config.body", /must be an object/, step("CALL_WEBHOOK", { url: hook, body: ["Hello"] })],
    [
      "steps[0].config.body",
      /at most 20000 characters/,
      step("CALL_WEBHOOK", { url: hook, body: { a: "x".repeat(20_001) } }),
    ],
    [
      `steps[0].config.body${".a".repeat(11)}`,
      /at most 10 levels/,
      step("CALL_WEBHOOK", { url: hook, body: { a: JSON.parse(`${'{"a":'.repeat(11)}1${"}".repeat(11)}`) } }),
    ],
  ])("%s: %s", async (path, message, rest) => {
    const refusal = await world.owen.refused(creation, { input: definition(rest) });
    expect(refusal).toMatchObject({ code: "BAD_USER_INPUT", field: path });
    expect(refusal.message.startsWith(`${path}: `)).toBe(true);
    expect(refusal.message).toMatch(message);
  });

  test("people, projects and records of others cannot be referenced", async () => {
    const { olga, owen, summit, peak } = world;
    const foreign = await olga.get(
      `mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id } }`,
      { input: { projectId: peak.id, name: "Fair" } },
    );
    const refused = (rest: Record<string, unknown>) => owen.refused(creation, { input: definition(rest) });
    expect(await refused({ projectId: peak.id })).toMatchObject({ code: "NOT_FOUND", field: "projectId" });
    expect(await refused({ organizationId: summit.id })).toMatchObject({
      code: "NOT_FOUND",
      field: "organizationId",
    });
    expect(await refused(step("ASSIGN", { to: "MEMBER", memberId: olga.id }))).toMatchObject({
      field: "steps[0].config.memberId",
    });
    expect(await refused(step("UPDATE_FIELD", { field: "assigneeId", value: olga.id }))).toMatchObject({
      field: "steps[0].config.value",
    });
    expect(
      await refused(step("UPDATE_FIELD", { field: "sourceId", value: foreign.createLeadSource.id })),
    ).toMatchObject({
      field: "steps[0].config.value",
    });
    expect(await refused(schedule({ filter: { projectId: [peak.id] } }))).toMatchObject({
      field: "trigger.filter.projectId[0]",
    });
    // A seller with a role in the project can be referenced if the workflow is for that project.
    expect(await refused(step("ASSIGN", { to: "MEMBER", memberId: world.sam.id }))).toMatchObject({
      field: "steps[0].config.memberId",
    });
    await create({
      projectId: world.project.id,
      ...step("ASSIGN", { to: "MEMBER", memberId: world.sam.id }),
    });
  });

  test("a change is validated as a whole: steps that read the event keep their trigger", async () => {
    const id = await create({ steps: [{ type: "CREATE_NOTE", config: { text: "{{ event.name }}" } }] });
    expect(await world.owen.refused(change, { input: { id, trigger: { type: "MANUAL" } } })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "steps[0].config.text",
    });
    expect(await world.owen.refused(change, { input: { id, trigger: null } })).toMatchObject({
      code: "BAD_USER_INPUT",
      field: "trigger",
    });
    expect(await world.owen.refused(change, { input: { id, steps: [] } })).toMatchObject({ field: "steps" });
    await world.owen.get(change, { input: { id, trigger: { type: "EVENT", event: "lead.*" } } });
  });

  test("enabling detects members who have left", async () => {
    const gone = await world.signUp("Gil Gone");
    await world.owner.query(
      "insert into app_public.organization_user_connections (organization_id, user_id, role) values ($1, $2, 'MEMBER')",
      [world.harbour.id, gone.id],
    );
    const id = await create(step("ASSIGN", { to: "MEMBER", memberId: gone.id }));
    await world.owner.query("delete from app_public.organization_user_connections where user_id = $1", [
      gone.id,
    ]);
    expect(await world.owen.refused(act("enableWorkflow"), { id })).toMatchObject({
      field: "steps[0].config.memberId",
    });
  });
});

test("valid definitions are accepted: every type of step, every operator", async () => {
  const id = await create({
    subjectType: "RESERVATION",
    trigger: {
      type: "SCHEDULE",
      schedule: "30 9 * * MON-FRI",
      timeZone: "America/Toronto",
      filter: { status: ["PENDING", "CONFIRMED"], projectId: world.project.id },
    },
    conditions: {
      and: [
        { "<": [-172800, { secondsSince: { var: "reservation.expiresAt" } }, 0] },
        { some: [{ var: "lead.tags" }, { "==": [{ var: "" }, "vip"] }] },
        {
          if: [
            { in: ["x", { cat: [{ var: "lead.name" }, { substr: ["abc", 1] }] }] },
            { missing: ["lead.email", "lead.phone"] },
            { "!!": [{ var: ["context.a.b", 7] }] },
          ],
        },
        {
          ">=": [
            { "+": [{ var: "unit.price" }, { "-": [{ "*": [2, 3] }, { "/": [4, 2] }] }] },
            { max: [1, { min: [2, { "%": [7, 3] }] }] },
          ],
        },
        {
          or: [
            { "!==": [1, "1"] },
            { none: [[], { "===": [1, 1] }] },
            { all: [[1], { ">": [{ var: "" }, 0] }] },
            { "!": [{ "<=": [1, 2] }] },
            { "!=": [1, 2] },
          ],
        },
      ],
    },
    steps: [
      {
        type: "SEND_EMAIL",
        config: {
          subject: "{{ unit.title }}",
          body: "{% for tag in lead.tags %}{{ tag }} {{ forloop.index }}{% endfor %}{{ reservation.price | money }} {{ assignee.fullName }}",
          html: "<p>{{ lead.address.locality }}</p>",
        },
      },
      {
        type: "CREATE_TASK",
        config: {
          title: "Call {{ lead.name }}",
          type: "CALL",
          priority: "HIGH",
          assignee: "MEMBER",
          memberId: world.max.id,
          dueInSeconds: 3600,
        },
      },
      {
        type: "CREATE_NOTE",
        config: { text: "Task {{ steps[2].taskId }}", pinned: true, visibility: "TEAM" },
      },
      { type: "ASSIGN", config: { to: "NEXT_IN_TURN" } },
      { type: "UPDATE_FIELD", config: { record: "LEAD", field: "status", value: "HOT" } },
      {
        type: "UPDATE_FIELD",
        config: { field: "notes", value: "{{ now | date: '%Y' }} {{ context.reason }}" },
      },
      { type: "UPDATE_FIELD", config: { record: "LEAD", field: "budgetMin", value: null } },
      { type: "ADD_TAG", config: { tag: "late" } },
      { type: "REMOVE_TAG", config: { tag: "late" } },
      { type: "WAIT", config: { until: "reservation.expiresAt", offsetSeconds: -86400 } },
      {
        type: "WAIT_FOR_EVENT",
        config: {
          event: "appointment.created",
          timeoutSeconds: 60,
          conditions: { "==": [{ var: "event.data.status" }, "CONFIRMED"] },
          onTimeout: 13,
        },
      },
      { type: "BRANCH", config: { condition: { "==": [{ var: "steps.2.taskId" }, 1] }, then: 13, else: 14 } },
      {
        type: "CALL_WEBHOOK",
        config: {
          url: "https://8.8.8.8/hook",
          body: { id: "{{ subject.id }}", deep: ["{{ project.title }}", 1, null] },
        },
      },
      {
        type: "NOTIFY_TEAM",
        config: { to: "MEMBERS", memberIds: [world.max.id], message: "{{ organization.name }}" },
      },
      {
        type: "ESCALATE",
        config: {
          title: "Look",
          kind: "NO_RESPONSE",
          priority: "URGENT",
          memberId: world.ada.id,
          dueInSeconds: 0,
        },
        waitSeconds: 5,
      },
      { type: "STOP", config: { reason: "Done" } },
    ],
  });
  expect(id).toEqual(expect.any(String));
});

test("the example of the guide is accepted", async () => {
  const guide = await readFile(join(repository, "docs/workflows.md"), "utf8");
  const [document, variables] = ["graphql", "json"].map(
    (language) => new RegExp(`\`\`\`${language}\\n([^]*?)\`\`\``).exec(guide)![1]!,
  ) as [string, string];
  const data = await world.owen.get(
    document,
    JSON.parse(variables.replace("larkfield-homes", world.harbour.slug)),
  );
  expect(data.createWorkflow.steps.map((step: { sequence: number }) => step.sequence)).toEqual([1, 2, 3, 4]);
});

test("an organization has at most 500 workflows, and its list is paged and filtered in one statement", async () => {
  const { rows } = await world.owner.query(
    `insert into app_public.workflows (organization_id, name, subject_type, trigger)
     select $1, 'Many ' || n, 'TASK', '{"type": "BATCH"}' from generate_series(1, 500) n returning id`,
    [world.summit.id],
  );
  expect(rows).toHaveLength(500);
  expect(
    await world.olga.refused(creation, { input: definition({ organizationId: world.summit.id }) }),
  ).toMatchObject({
    code: "LIMIT_EXCEEDED",
    limit: 500,
  });
  const list = (first: number) =>
    world.statements(() =>
      world.olga.get(
        `query ($id: ID!) { organization(id: $id) { workflows(first: ${first}, filter: { triggerType: [BATCH], subjectType: [TASK] }) {
          name steps { type } createdBy { fullName } project { title } } } }`,
        { id: world.summit.id },
      ),
    );
  // The first request after a change sends statements again if the cached permissions have changed.
  await list(1);
  const [one, many] = [await list(1), await list(50)];
  expect([one.result, many.result].map(({ organization }) => organization.workflows.length)).toEqual([1, 50]);
  expect(many.count).toBe(one.count);
});
