/** Tasks: their assignees, and the portfolio list of tasks as every kind of viewer. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Person } from "../harness/api.ts";
import { startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { createIn } from "../harness/records.ts";
import { programOf } from "../harness/world.ts";

let world: Portfolio;
beforeAll(async () => {
  world = await startPortfolio();
});
afterAll(() => world.stop());

const make = (person: Person, input: Record<string, unknown>): Promise<string> =>
  createIn(person)("createTask", input);
const titles = async (person: Person, filter: Record<string, unknown> = {}, rest = ""): Promise<string[]> =>
  (
    await person.get(
      `query ($filter: TasksFilter) { tasks(filter: $filter, first: 200 ${rest}) { title } }`,
      { filter },
    )
  ).tasks.map((task: any) => task.title);
const inHours = (hours: number) => new Date(Date.now() + hours * 3_600_000).toISOString();

test("a task is assigned to its author by default, or to the given user, and can be unassigned", async () => {
  const { max, mia, owen, sam, leads, harbour } = world;
  const fields = "{ id assignee { id } createdBy { id } }";
  const created = async (person: Person, input: Record<string, unknown>) =>
    (
      await person.get(`mutation ($input: CreateTaskInput!) { createTask(input: $input) ${fields} }`, {
        input: { title: "Whose", ...input },
      })
    ).createTask;
  expect(await created(max, { organizationId: harbour.id })).toMatchObject({
    assignee: { id: max.id },
    createdBy: { id: max.id },
  });
  expect((await created(sam, { leadId: leads.sams.id })).assignee).toEqual({ id: sam.id });
  expect((await created(max, { leadId: leads.open.id, assigneeId: null })).assignee).toEqual({ id: max.id });
  const named = await created(owen, { leadId: leads.open.id, assigneeId: mia.id });
  expect(named.assignee).toEqual({ id: mia.id });
  const program = await programOf(world, max, { scopes: ["lead.*", "org.member"] });
  expect((await created(program, { leadId: leads.open.id })).assignee).toEqual({ id: max.id });
  const { updateTask } = await owen.get(
    `mutation { updateTask(input: { id: "${named.id}", assigneeId: null }) ${fields} }`,
  );
  expect(updateTask.assignee).toBeNull();
  await world.owner.query("delete from app_public.tasks");
});

test("the list contains what its viewer may see, once each, ordered by due date", async () => {
  const { owen, ada, max, mia, sam, bob, olga, leads, harbour, summit, project, quiet, anonymous } = world;
  await world.owner.query("delete from app_public.tasks");
  await make(owen, { organizationId: harbour.id, title: "org", dueAt: inHours(5) });
  await make(max, { organizationId: harbour.id, title: "org of max", dueAt: inHours(2) });
  await make(owen, { projectId: project.id, title: "project", dueAt: inHours(3) });
  await make(owen, { projectId: quiet.id, title: "quiet", dueAt: inHours(1) });
  await make(max, { projectId: quiet.id, title: "quiet of max" });
  await make(owen, { leadId: leads.open.id, title: "open lead", dueAt: inHours(4) });
  await make(owen, { leadId: leads.sams.id, title: "sam's lead", dueAt: inHours(6) });
  await make(owen, { leadId: leads.maxs.id, title: "max's lead" });
  await make(owen, { leadId: leads.mias.id, title: "mia's lead" });
  await make(owen, { leadId: leads.mias.id, title: "mia's lead, max to do", assigneeId: max.id });
  await make(olga, { organizationId: summit.id, title: "summit" });
  const all = [
    "quiet",
    "org of max",
    "project",
    "open lead",
    "org",
    "sam's lead",
    "quiet of max",
    "max's lead",
    "mia's lead",
    "mia's lead, max to do",
  ];
  const seen = (...hidden: string[]) => all.filter((title) => !hidden.includes(title));
  expect(await titles(owen)).toEqual(all);
  expect(await titles(ada)).toEqual(all);
  // A colleague's leads of a private project are invisible to them, regardless of the assignee of the task.
  expect(await titles(max)).toEqual(seen("mia's lead", "mia's lead, max to do"));
  expect(await titles(mia)).toEqual(seen("max's lead"));
  expect(await titles(sam)).toEqual(["sam's lead"]);
  expect(await titles(bob)).toEqual([]);
  expect(await titles(olga)).toEqual(["summit"]);
  expect(await anonymous.refused("{ tasks { id } }")).toMatchObject({ code: "UNAUTHENTICATED" });
  // Tokens with scopes for leads, for the organization, or for neither.
  const withoutLead = ["quiet", "org of max", "project", "org", "quiet of max"];
  const token = (scopes: string[]) => programOf(world, owen, { scopes });
  expect(await titles(await token(["lead.read"]))).toEqual(seen(...withoutLead));
  expect(await titles(await token(["org.member"]))).toEqual(
    all.filter((title) => withoutLead.includes(title)),
  );
  expect(await titles(await token(["project.read"]))).toEqual([]);
  expect(await titles(await programOf(world, max, { scopes: ["org.member"] }))).toEqual(
    all.filter((title) => withoutLead.includes(title)),
  );

  // Each page of the connection continues after the previous one, also among tasks without a due date.
  for (const [person, expected] of [
    [owen, all],
    [max, seen("mia's lead", "mia's lead, max to do")],
    [sam, ["sam's lead"]],
  ] as const) {
    for (const first of [1, 3, 7]) {
      const found: string[] = [];
      let after: string | null = null;
      let hasNext = true;
      while (hasNext) {
        const { tasksConnection: page }: any = await person.get(
          `query ($after: Cursor, $first: Int) { tasksConnection(first: $first, after: $after) {
            totalCount nodes { title } pageInfo { hasNextPage endCursor } } }`,
          { after, first },
        );
        expect(page.totalCount).toBe(expected.length);
        found.push(...page.nodes.map((task: any) => task.title));
        ({ hasNextPage: hasNext, endCursor: after } = page.pageInfo);
      }
      expect(found).toEqual(expected);
    }
  }
  // By project, and by related person.
  expect(await titles(owen, { projectIds: [quiet.slug] })).toEqual([
    "quiet",
    "quiet of max",
    "max's lead",
    "mia's lead",
    "mia's lead, max to do",
  ]);
  expect(await titles(max, { projectIds: [quiet.id] })).toEqual(["quiet", "quiet of max", "max's lead"]);
  expect(await titles(sam, { projectIds: [project.id] })).toEqual(["sam's lead"]);
  expect(await titles(olga, { projectIds: [project.id, quiet.id] })).toEqual([]);
  expect(await titles(owen, { leadIds: [leads.open.id, leads.maxs.id] })).toEqual([
    "open lead",
    "max's lead",
  ]);
  expect(await titles(owen, { organizationIds: [summit.id] })).toEqual([]);
  expect(await titles(owen, {}, ", orderBy: [DUE_AT_DESC]")).toHaveLength(all.length);
});

test("mine, open, due and overdue", async () => {
  const { owen, max, harbour, leads } = world;
  await world.owner.query("delete from app_public.tasks");
  // In the time zone of the viewer, the day ends in between.
  await owen.get(
    `mutation { updateUser(input: { id: "${owen.id}", timeZone: "Pacific/Kiritimati" }) { id } }`,
  );
  const { rows } = await world.owner.query(
    `select (date_trunc('day', now() at time zone 'Pacific/Kiritimati') + interval '1 day') at time zone 'Pacific/Kiritimati' as ends`,
  );
  const ends = (rows[0].ends as Date).getTime();
  const at = (ms: number) => new Date(ms).toISOString();
  const organizationId = harbour.id;
  await make(owen, { organizationId, title: "late", dueAt: inHours(-30) });
  await make(owen, { organizationId, title: "today", dueAt: at(ends - 1) });
  await make(owen, { organizationId, title: "tomorrow", dueAt: at(ends) });
  await make(owen, { organizationId, title: "some day" });
  await make(owen, { leadId: leads.open.id, title: "of max, late", dueAt: inHours(-20), assigneeId: max.id });
  const done = await make(owen, { organizationId, title: "done", dueAt: inHours(-40), priority: "URGENT" });
  await owen.get(`mutation { updateTask(input: { id: "${done}", status: COMPLETED }) { id } }`);
  const waits = await make(owen, { organizationId, title: "waits", dueAt: inHours(-10) });
  for (const status of ["IN_PROGRESS", "WAITING"])
    await owen.get(`mutation { updateTask(input: { id: "${waits}", status: ${status} }) { id } }`);

  const all = ["done", "late", "of max, late", "waits", "today", "tomorrow", "some day"];
  const without = (...left: string[]) => all.filter((title) => !left.includes(title));
  expect(await titles(owen)).toEqual(all);
  expect(await titles(owen, { mine: true })).toEqual(without("of max, late"));
  expect(await titles(owen, { mine: false })).toEqual(["of max, late"]);
  expect(await titles(max, { mine: true })).toEqual(["of max, late"]);
  expect(await titles(owen, { open: true })).toEqual(without("done"));
  expect(await titles(owen, { open: false })).toEqual(["done"]);
  const overdue = ["late", "of max, late", "waits"];
  expect(await titles(owen, { overdue: true })).toEqual(overdue);
  expect(await titles(owen, { overdue: false })).toEqual(without(...overdue));
  expect(await titles(owen, { due: true })).toEqual([...overdue, "today"]);
  expect(await titles(owen, { due: false })).toEqual(["done", "tomorrow", "some day"]);
  expect(await titles(owen, { mine: true, overdue: true, status: ["OPEN"] })).toEqual(["late"]);
  expect(await titles(owen, { status: ["COMPLETED", "WAITING"] })).toEqual(["done", "waits"]);
  expect(await titles(owen, { open: true, status: ["COMPLETED"] })).toEqual([]);
  expect(await titles(owen, { priority: ["URGENT"] })).toEqual(["done"]);
  expect(await titles(owen, { assigneeIds: [max.id!] })).toEqual(["of max, late"]);
  expect(await titles(owen, { dueAt: { from: at(ends) } })).toEqual(["tomorrow"]);
  // The lists of records have the same filter.
  const { lead } = await owen.get(
    `{ lead(id: "${leads.open.id}") { tasks(filter: { overdue: true, mine: false }) { title } } }`,
  );
  expect(lead.tasks).toEqual([{ title: "of max, late" }]);
  const { tasksConnection } = await owen.get(
    `{ tasksConnection(filter: { open: true }) { totalCount aggregates { distinctCount { assigneeId } } } }`,
  );
  expect(tasksConnection.totalCount).toBe(6);
});
