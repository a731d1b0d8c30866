/** Plans of the list of tasks with realistic numbers of rows: how many rows are read. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { loadTasks } from "../../bench/data/tasks.ts";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { cost, explain } from "../harness/explain.ts";

/** Can be set to test a larger size. */
const leads = Number(process.env.TASKS_OF_LEADS ?? 20_000);
let api: Api;
let owner: Person, member: Person, seller: Person, small: Person;
let project: string;

beforeAll(async () => {
  ({ api, owner, member, seller, project } = await startLargeOrganization(
    { leads },
    async ({ signUp }) => {
      const names = ["Max Member", "Sue Owner", "Sid Seller"];
      const [max, sue, sid] = (await Promise.all(names.map(signUp))) as [Person, Person, Person];
      small = sue;
      return { leads: 1_000, viewers: { owner: sue.id!, member: max.id!, seller: sid.id! } };
    },
    (client) => loadTasks(client, { each: 2 }),
  ));
}, 600_000);
afterAll(() => api.stop());

const list = "query ($filter: TasksFilter) { tasks(first: 50, filter: $filter) { id title dueAt } }";
const page = `query ($filter: TasksFilter, $after: Cursor) {
  tasksConnection(first: 50, filter: $filter, after: $after) { nodes { id dueAt } pageInfo { endCursor } } }`;

test("as many index rows are read as the page contains, for every viewer", async () => {
  for (const person of [owner, member, small]) {
    const plan = await explain(api, person, list);
    // Seven projects, tasks of the organization itself, and tasks of own leads in the other projects.
    expect(cost(plan, "tasks")).toBeLessThanOrEqual(8 * 50 + (leads / 100) * 2);
  }
  // The few tasks of a seller's leads are determined first.
  const plan = await explain(api, seller, list);
  expect(cost(plan, "tasks")).toBeLessThanOrEqual((leads / 100) * 2 + 13 * 50);
});

test.each<[string, Record<string, unknown>]>([
  ["overdue", { overdue: true }],
  ["due", { due: true }],
  ["open", { open: true }],
  ["mine", { mine: true }],
  ["mine and overdue", { mine: true, overdue: true }],
  ["of a status", { status: ["CANCELLED"] }],
  ["of several", { status: ["OPEN", "WAITING"] }],
])("those that are %s are looked up, without reading completed ones", async (_name, filter) => {
  for (const person of [owner, small]) {
    const plan = await explain(api, person, list, { filter });
    expect(cost(plan, "tasks")).toBeLessThanOrEqual(13 * 3 * 50);
    expect(plan.indexes.size).toBeGreaterThan(0);
  }
});

test("of a project use its index", async () => {
  for (const filter of [{ projectIds: [project] }, { projectIds: [project], overdue: true }]) {
    const plan = await explain(api, owner, list, { filter });
    expect(cost(plan, "tasks")).toBeLessThanOrEqual(4 * 50);
  }
});

test("a page of the connection starts where the previous one ended, at any depth", async () => {
  let after: string | null = null;
  for (let n = 0; n < 4; n++) {
    const plan = await explain(api, owner, page, { after });
    expect(cost(plan, "tasks")).toBeLessThanOrEqual(13 * 51 * 2);
    after = (await owner.get(page, { after })).tasksConnection.pageInfo.endCursor;
  }
});
