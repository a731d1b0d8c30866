/** Sandbox organizations: effects of turning their clock, and messages that are never sent. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Workflows } from "../../src/workflows/runner.ts";
import { createIn, mutationOf, type Create } from "../harness/records.ts";
import { affiliate, createProject, join, startWorld, type World } from "../harness/world.ts";
import { until } from "../harness/until.ts";
import { createOutbox, runJobs, type Outbox } from "../tasks/worker.ts";
import { createWorkflow, reaches, read, runWorkflows, start } from "./world.ts";

let world: World;
let outbox: Outbox;
let workflows: Workflows;
let sandbox: { id: string; isSandbox: boolean; clockAheadSeconds: number };
let project: { id: string };
let create: Create;

const organizationFields = "{ id isSandbox clockAheadSeconds }";
const ADVANCE = mutationOf("advanceSandboxClock", organizationFields);
const hour = 3_600;
const day = 24 * hour;
const advance = async (seconds: number, more: object = {}) =>
  (await world.owen.get(ADVANCE, { input: { organizationId: sandbox.id, seconds, ...more } }))
    .advanceSandboxClock;
const inHours = (hours: number) => new Date(Date.now() + hours * hour * 1000).toISOString();
const eventsOf = async (names: string[]): Promise<{ name: string; subjectId: string }[]> =>
  (
    await world.owen.get(
      `query ($filter: EventsFilter!) { events(first: 100, orderBy: [ID_ASC], filter: $filter) { name subjectId } }`,
      { filter: { organizationIds: [sandbox.id], names } },
    )
  ).events;

beforeAll(async () => {
  world = await startWorld();
  [outbox, workflows] = await Promise.all([createOutbox(), runWorkflows(world, 2000)]);
  const made = await world.owen.get(mutationOf("createOrganization", organizationFields), {
    input: { name: "Harbour Trials", isSandbox: true },
  });
  sandbox = made.createOrganization;
  project = await createProject(world.owen, { organizationId: sandbox.id, title: "Trial Towers" });
  create = createIn(world.owen);
});
afterAll(async () => {
  await workflows?.stop();
  await outbox?.remove();
  await world?.stop();
});

test("everything due in the skipped time happens, once and with its events; other organizations are unaffected", async () => {
  expect(sandbox).toMatchObject({ isSandbox: true, clockAheadSeconds: 0 });
  const planId = await create("createFloorPlan", { projectId: project.id, title: "A", bedrooms: 2 });
  const unitId = await create("createUnit", {
    projectId: project.id,
    floorPlanId: planId,
    title: "101",
    number: "101",
  });
  await world.owen.get(mutationOf("updateUnit"), {
    input: { id: unitId, status: "AVAILABLE", price: "500000.00" },
  });
  const holdId = await create("createUnitHold", { unitId, expiration: 1 });
  const openHouseId = await create("createOpenHouse", {
    projectId: project.id,
    title: "First look",
    startsAt: inHours(30),
    endsAt: inHours(32),
  });
  const taskId = await create("createTask", { projectId: project.id, title: "Call", dueAt: inHours(40) });
  const before = await eventsOf(["*"]);
  const foreign = await world.owen.get("{ leads { id registeredAt } }");

  expect(await advance(31 * hour)).toMatchObject({ clockAheadSeconds: 31 * hour });
  const status = async () =>
    (await world.owen.get("query ($id: ID!) { unit(id: $id) { status } }", { id: unitId })).unit;
  expect(await status()).toEqual({ status: "AVAILABLE" });
  const names = ["unit_hold.expired", "open_house.*", "task.overdue", "organization.clock_advanced"];
  expect(await eventsOf(names)).toEqual(
    expect.arrayContaining([
      { name: "unit_hold.expired", subjectId: holdId },
      { name: "open_house.started", subjectId: openHouseId },
      { name: "organization.clock_advanced", subjectId: sandbox.id },
    ]),
  );
  await advance(day);
  const happened = await eventsOf(names);
  expect(happened.filter(({ name }) => name === "open_house.started")).toHaveLength(1);
  expect(happened).toEqual(
    expect.arrayContaining([
      { name: "open_house.ended", subjectId: openHouseId },
      { name: "task.overdue", subjectId: taskId },
    ]),
  );
  // Earlier effects write no event again.
  expect((await eventsOf(["*"])).slice(0, before.length)).toEqual(before);
  expect(await world.owen.get("{ leads { id registeredAt } }")).toEqual(foreign);
  expect(
    await world.owen.get("query ($id: ID!) { organization(id: $id) { isSandbox clockAheadSeconds } }", {
      id: world.harbour.id,
    }),
  ).toEqual({
    organization: { isSandbox: false, clockAheadSeconds: 0 },
  });
});

test("workflows continue after their wait, and mail is only sent to members", async () => {
  // An invitation permits mails to the address only for itself.
  await create("createOrganizationInvite", {
    organizationId: sandbox.id,
    email: "lea@example.com",
    role: "MEMBER",
  });
  const leadId = await create("createLead", {
    projectId: project.id,
    name: "Lea Lead",
    email: "lea@example.com",
    phone: "+14165550188",
  });
  const workflowId = await createWorkflow(
    world,
    [
      { type: "WAIT", waitSeconds: 2 * day },
      { type: "SEND_EMAIL", config: { subject: "Hello", body: "Hello." }, onError: "SKIP" },
      { type: "SEND_SMS", config: { body: "Hello." } },
      { type: "ADD_TAG", config: { tag: "done" } },
    ],
    { organizationId: sandbox.id },
  );
  const execution = await start(world.owen, workflowId, leadId);
  await advance(2 * day + 60);
  await until(
    async () => {
      await runJobs(world.database.ownerUrl, outbox.provider);
      return read(world.owen, execution);
    },
    ({ status }) => status === "COMPLETED",
  );
  const { steps } = await reaches(world.owen, execution, "COMPLETED");
  expect(steps.map((run: any) => [run.step.type, run.status, run.error])).toEqual([
    ["WAIT", "SUCCEEDED", null],
    ["SEND_EMAIL", expect.any(String), expect.stringContaining("sandbox")],
    ["SEND_SMS", "SKIPPED", "A sandbox organization sends no text messages to leads and buyers."],
    ["ADD_TAG", "SUCCEEDED", null],
  ]);
  const subjects = (await outbox.take()).flatMap(({ to, subject }) =>
    to?.some(({ address }) => address === "lea@example.com") ? [subject] : [],
  );
  expect(subjects).toEqual(["Invitation to join Harbour Trials"]);
});

test("its projects are never public", async () => {
  const input = { id: project.id, visibility: "PUBLIC" };
  expect(await world.owen.refused(mutationOf("updateProject"), { input })).toMatchObject({
    code: "CONFLICT",
    field: "visibility",
  });
  await world.owen.get(mutationOf("updateProject"), { input: { ...input, visibility: "UNLISTED" } });
});

test("only its owner can turn the clock, forward and within a limit", async () => {
  const input = { organizationId: sandbox.id, seconds: 60 };
  await join(world, sandbox.id, world.ada, "ADMIN");
  await join(world, sandbox.id, world.max, "MEMBER");
  const refusal = async (by = world.owen, more: object = {}) =>
    (await by.refused(ADVANCE, { input: { ...input, ...more } })).code;
  expect(await refusal(world.ada)).toBe("FORBIDDEN");
  expect(await refusal(world.max)).toBe("FORBIDDEN");
  expect(await refusal(world.olga)).toBe("NOT_FOUND");
  expect(await refusal(world.anonymous)).toBe("UNAUTHENTICATED");
  expect(await refusal(world.owen, { organizationId: world.harbour.id })).toBe("CONFLICT");
  // Turning rewrites all events of a sandbox: one at a time for each user, for all of their sandboxes.
  const turning = await world.owner.connect();
  await turning.query("select pg_advisory_lock(hashtextextended($1, 0))", [`plat.clock ${world.owen.id}`]);
  expect(await refusal()).toBe("RATE_LIMITED");
  expect(await refusal(world.owen, { dryRun: true })).toBe("RATE_LIMITED");
  await turning.query("select pg_advisory_unlock_all()");
  turning.release();
  for (const seconds of [0, -60, 366 * day + 1])
    expect(await refusal(world.owen, { seconds })).toBe("BAD_USER_INPUT");
  const ahead = (await advance(1)).clockAheadSeconds;
  expect((await advance(60, { dryRun: true })).clockAheadSeconds).toBe(ahead + 60);
  expect((await advance(1)).clockAheadSeconds).toBe(ahead + 1);
});

test("an affiliation follows the clock of the project's organization, not of the affiliated one", async () => {
  const foreign = await createProject(world.olga, { organizationId: world.summit.id, title: "Foreign" });
  await affiliate(world, foreign, sandbox, "SELLER");
  await affiliate(world, project, world.summit, "SELLER");
  const since = async (projectId: string): Promise<number> => {
    const { rows } = await world.owner.query(
      "select inserted_at from app_public.project_organizations where project_id = $1 and role = 'SELLER'",
      [projectId],
    );
    return rows[0].inserted_at.getTime();
  };
  const before = [await since(foreign.id), await since(project.id)];
  await advance(60);
  expect([await since(foreign.id), await since(project.id)]).toEqual([before[0], before[1]! - 60_000]);
});
