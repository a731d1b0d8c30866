/** The job console: operators manage all jobs, owners those of their organization, and nobody else has access. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { programOf, startWorld, type World } from "../harness/world.ts";

let world: World;
let ops: Person;
const add = async (task: string, payload: object, more = "") =>
  (
    await world.owner.query(`select id::text from graphile_worker.add_job($1, payload => $2::json${more})`, [
      task,
      payload,
    ])
  ).rows[0].id as string;
const fail = (id: string) =>
  world.owner.query(
    "update graphile_worker._private_jobs set attempts = max_attempts, last_error = 'The receiver said no.' where id = $1",
    [id],
  );

const list = `query ($task: String, $state: JobState, $organizationId: ID, $arguments: JSON, $createdBefore: DateTime, $beforeId: String, $most: Int) {
  jobs(task: $task, state: $state, organizationId: $organizationId, arguments: $arguments, createdBefore: $createdBefore, beforeId: $beforeId, most: $most) {
    id task state attempts maxAttempts runAt lastError queue requestId arguments } }`;
const jobs = async (who: Person, variables: Record<string, unknown> = {}) =>
  (await who.get(list, variables)).jobs as any[];
const retry = "mutation ($input: RetryJobsInput!) { retryJobs(input: $input) { changed more } }";
const discard = "mutation ($input: DiscardJobsInput!) { discardJobs(input: $input) { changed more } }";
const reschedule =
  "mutation ($input: RescheduleJobsInput!) { rescheduleJobs(input: $input) { changed more } }";
const pause = "mutation ($input: PauseTaskInput!) { pauseTask(input: $input) { name pausedAt pauseReason } }";
const resume = "mutation ($input: ResumeTaskInput!) { resumeTask(input: $input) { name pausedAt } }";
const tasks = "{ jobTasks { name due scheduled failed oldestDueAt pausedAt } }";
const inHarbour = () => ({ context: { organizationId: world.harbour.id, requestId: "request-1" } });

beforeAll(async () => {
  world = await startWorld();
  ops = await world.signUp("Opal Operator");
  await world.owner.query("select app_private.make_operator($1)", [ops.email]);
  await world.owner.query("delete from graphile_worker._private_jobs");
});
afterAll(() => world.stop());

test("an operator sees all jobs, filtered by task, state, age and arguments, without secrets", async () => {
  const due = await add("export__requested", {
    id: "1",
    ...inHarbour(),
    newPassword: "hunter2",
    nested: { token: "t0p" },
  });
  const later = await add(
    "files__sweep",
    { n: 1 },
    ", run_at => now() + interval '1 h', queue_name => 'sweeps'",
  );
  const failed = await add("webhook__disabled", { id: "2" });
  await fail(failed);
  const ids = (found: any[]) => found.map(({ id }) => id);
  expect(ids(await jobs(ops))).toEqual([failed, later, due]);
  expect(ids(await jobs(ops, { task: "files__sweep" }))).toEqual([later]);
  expect(ids(await jobs(ops, { state: "FAILED" }))).toEqual([failed]);
  expect(ids(await jobs(ops, { state: "SCHEDULED" }))).toEqual([later]);
  expect(ids(await jobs(ops, { state: "DUE" }))).toEqual([due]);
  expect(ids(await jobs(ops, { arguments: { n: 1 } }))).toEqual([later]);
  expect(ids(await jobs(ops, { createdBefore: "2020-01-01T00:00:00Z" }))).toEqual([]);
  expect(ids(await jobs(ops, { most: 1 }))).toEqual([failed]);
  expect(ids(await jobs(ops, { beforeId: failed, most: 1 }))).toEqual([later]);
  const [found] = await jobs(ops, { state: "DUE" });
  expect(found).toMatchObject({
    requestId: "request-1",
    attempts: 0,
    task: "export__requested",
    lastError: null,
  });
  expect(JSON.stringify(found)).not.toMatch(/hunter2|t0p/);
  expect((await jobs(ops, { state: "FAILED" }))[0].lastError).toBe("The receiver said no.");
  // Masked arguments cannot be filtered by either.
  expect(await jobs(ops, { arguments: { newPassword: "hunter2" } })).toEqual([]);
  const { jobTasks } = await ops.get(tasks);
  expect(jobTasks.find(({ name }: any) => name === "webhook__disabled")).toMatchObject({ failed: 1, due: 0 });
  expect((await ops.refused(list, { most: 201 })).code).toBe("BAD_USER_INPUT");
  expect((await ops.refused(list, { beforeId: "x" })).code).toBe("BAD_USER_INPUT");
});

test("refuses everybody else; an owner only sees jobs of the organization", async () => {
  const { owen, ada, max, olga, harbour, anonymous } = world;
  const all = { createdBefore: "2100-01-01T00:00:00Z" };
  const changes: [string, Record<string, unknown>][] = [
    [retry, all],
    [discard, all],
    [reschedule, { ...all, runAt: "2026-12-01T00:00:00Z" }],
  ];
  const waiting = () =>
    world.owner.query(
      `select j.id, j.run_at, j.attempts from graphile_worker._private_jobs j join graphile_worker._private_tasks t on t.id = j.task_id
       where t.identifier in ('export__requested', 'files__sweep', 'webhook__disabled') order by j.id`,
    );
  const before = await waiting();
  // An access token of an operator does not have the operator's rights.
  const robot = await programOf(world, ops, {});
  for (const who of [owen, ada, max, olga, robot]) {
    expect((await who.refused(list)).code).toBe("FORBIDDEN");
    // Operations on all organizations have no argument for one, so their refusal does not ask for it.
    for (const refusal of [
      await who.refused(tasks),
      await who.refused(pause, { input: { task: "files__sweep" } }),
    ])
      expect(refusal).toEqual(
        expect.objectContaining({ code: "FORBIDDEN", message: expect.stringMatching(/^Only operators/) }),
      );
    expect(await who.refused(tasks)).not.toHaveProperty("field");
    for (const [change, input] of changes)
      expect((await who.refused(change, { input })).code).toBe("FORBIDDEN");
    for (const change of [pause, resume])
      expect((await who.refused(change, { input: { task: "files__sweep" } })).code).toBe("FORBIDDEN");
  }
  for (const change of [list, tasks]) expect((await anonymous.refused(change)).code).toBe("UNAUTHENTICATED");
  for (const [change, input] of changes)
    expect((await anonymous.refused(change, { input })).code).toBe("UNAUTHENTICATED");
  // In the organization: only the owner, also with a token that has the permission.
  const organizationId = harbour.id;
  expect(await jobs(owen, { organizationId })).toEqual([
    expect.objectContaining({ task: "export__requested", requestId: "request-1" }),
  ]);
  expect(await jobs(owen, { organizationId: harbour.slug })).toHaveLength(1);
  const token = await programOf(world, owen, { scopes: ["org.owner", "org.member"] });
  expect(await jobs(token, { organizationId })).toHaveLength(1);
  const lesser = await programOf(world, owen, { scopes: ["org.admin", "org.member"] });
  for (const [who, code] of [
    [ada, "FORBIDDEN"],
    [max, "FORBIDDEN"],
    [lesser, "FORBIDDEN"],
    [olga, "NOT_FOUND"],
  ] as const) {
    expect((await who.refused(list, { organizationId })).code).toBe(code);
    for (const [change, input] of changes)
      expect((await who.refused(change, { input: { ...input, organizationId } })).code).toBe(code);
  }
  // For an owner, ids of other organizations' jobs have no effect.
  const others = (await jobs(ops, { task: "files__sweep" })).map(({ id }) => id);
  expect((await owen.get(discard, { input: { ids: others, organizationId } })).discardJobs).toEqual({
    changed: 0,
    more: false,
  });
  expect((await waiting()).rows).toEqual(before.rows);
});

test("jobs are retried, rescheduled and discarded, by ids or filter, in bounded calls; the event names the operator", async () => {
  await world.owner.query("delete from graphile_worker._private_jobs");
  await world.owner.query(
    "select graphile_worker.add_job('files__sweep', payload => json_build_object('n', n)) from generate_series(1, 1500) n",
  );
  await world.owner.query("update graphile_worker._private_jobs set attempts = max_attempts");
  const [first] = await jobs(ops, { state: "FAILED" });
  expect((await ops.get(retry, { input: { ids: [first.id] } })).retryJobs).toEqual({
    changed: 1,
    more: false,
  });
  const input = { task: "files__sweep", state: "FAILED" };
  expect((await ops.get(retry, { input })).retryJobs).toEqual({ changed: 1000, more: true });
  expect((await ops.get(retry, { input })).retryJobs).toEqual({ changed: 499, more: false });
  expect((await ops.get(retry, { input })).retryJobs).toEqual({ changed: 0, more: false });
  expect(await jobs(ops, { state: "FAILED" })).toEqual([]);
  const runAt = new Date(Date.now() + 3_600_000).toISOString();
  expect((await ops.get(reschedule, { input: { runAt, arguments: { n: 7 } } })).rescheduleJobs).toEqual({
    changed: 1,
    more: false,
  });
  expect(await jobs(ops, { state: "SCHEDULED" })).toEqual([
    expect.objectContaining({ runAt: expect.stringContaining(runAt.slice(0, 19)) }),
  ]);
  expect(
    (await ops.refused(reschedule, { input: { runAt: "2100-01-01T00:00:00Z", state: "FAILED" } })).field,
  ).toBe("runAt");
  // Running jobs are unchanged.
  await world.owner.query(
    "update graphile_worker._private_jobs set locked_at = now(), locked_by = 'w' where payload ->> 'n' = '8'",
  );
  for (const more of [true, false])
    expect((await ops.get(discard, { input: { task: "files__sweep" } })).discardJobs.more).toBe(more);
  expect((await jobs(ops)).map(({ state }) => state)).toEqual(["RUNNING"]);
  expect((await ops.refused(discard, { input: {} })).field).toBe("ids");
  const { rows } = await world.owner.query(
    "select name, actor_id, (data ->> 'changed')::int as changed from app_public.events where subject_type = 'job' and sequence is not null order by id",
  );
  expect(new Set(rows.map(({ actor_id }) => actor_id))).toEqual(new Set([ops.id]));
  expect(rows.map(({ name, changed }) => [name, changed])).toEqual([
    ["job.retried", 1],
    ["job.retried", 1000],
    ["job.retried", 499],
    ["job.rescheduled", 1],
    ["job.discarded", 1000],
    ["job.discarded", 499],
  ]);
});

test("tasks can be paused and resumed, and both write events", async () => {
  const input = { task: "files__sweep", reason: "The store is full." };
  expect((await ops.get(pause, { input })).pauseTask).toMatchObject({
    pausedAt: expect.any(String),
    pauseReason: "The store is full.",
  });
  const id = await add("files__sweep", {});
  expect((await jobs(ops, { state: "PAUSED" })).map((job) => job.id)).toEqual([id]);
  expect((await ops.get(resume, { input: { task: "files__sweep" } })).resumeTask.pausedAt).toBeNull();
  expect(await jobs(ops, { state: "PAUSED" })).toEqual([]);
  expect((await ops.refused(pause, { input: { task: "no__such" } })).code).toBe("NOT_FOUND");
  const { rows } = await world.owner.query(
    "select name from app_public.events where name like 'job.task_%' and actor_id = $1 order by id",
    [ops.id],
  );
  expect(rows.map(({ name }) => name)).toEqual(["job.task_paused", "job.task_resumed"]);
});

test("refuses former operators", async () => {
  await world.owner.query("select app_private.end_operator($1)", [ops.email]);
  expect((await ops.refused(list)).code).toBe("FORBIDDEN");
  const { rows } = await world.owner.query("select app_private.make_operator('nobody@example.com') as said");
  expect(rows[0].said).toMatch(/no account/);
});
