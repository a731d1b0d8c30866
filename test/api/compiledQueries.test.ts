/**
 * Compiled queries, which are answered without their plan: the same answers for every viewer, from the same
 * statements. In all test files, each execution of a plan is also compared with the answer that a compiled query
 * would write from its rows; see test/harness/host.ts.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { Answer, Person } from "../harness/api.ts";
import { cast, createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { fullPages } from "../harness/fullPages.ts";

let world: Portfolio;
let everybody: Record<string, Person>;

beforeAll(async () => {
  world = await startPortfolio();
  everybody = cast(world);
});
afterAll(() => world.stop());

const documents: Record<string, { text: string; ids?: () => string[] }> = {
  "a lead by id": {
    text: "query Lead($id: ID!) { lead(id: $id) { __typename id name status email phone registeredAt tags project { id title } assignee { id firstName } } }",
    ids: () => Object.values(world.leads).map(({ id }) => id),
  },
  "a project by id": {
    text: "query Project($id: ID!) { project(id: $id) { id title visibility units(first: 2) { id floorPlan { title } } } }",
    ids: () => [world.project.id, world.quiet.id, world.park.id, world.peak.id],
  },
  "a list with a filter": {
    text: "query Leads($id: ID!) { leads(filter: { projectIds: [$id], status: [NEW] }, first: 20) { id name } }",
    ids: () => [world.project.id, world.quiet.id, world.peak.id],
  },
  "three levels": {
    text: "{ projects(first: 10) { id title units(first: 10) { id floorPlan { id title } } } }",
  },
  "a connection that is counted": {
    text: "query Counted($id: ID!) { leadsConnection(filter: { projectIds: [$id] }) { totalCount groupedAggregates(groupBy: [STATUS]) { keys distinctCount { id } } } }",
    ids: () => [world.project.id, world.quiet.id, world.peak.id],
  },
  "two fields with a statement each": {
    text: "query Two($id: ID!) { lead(id: $id) { id name } projects(first: 5) { id title } }",
    ids: () => Object.values(world.leads).map(({ id }) => id),
  },
  "records visible to visitors": { text: "{ publicProjects(first: 10) { id title slug status } }" },
  "the viewer": { text: "{ viewer { id firstName email organizations { organization { id name } } } }" },
};

/**
 * The response without the request id, the position, and the number of bytes read, which may differ in a
 * second request.
 */
const textOf = ({ status, data, errors, extensions }: Answer) =>
  JSON.stringify([status, data, errors, extensions], (key, value) =>
    ["requestId", "read", "position"].includes(key) ? undefined : value,
  );
const compiled = async () => (await world.documentCache()).compiled;

test("responses equal those of the regular plan, with the same number of statements, in any order of viewers", async () => {
  // The permissions of a token are looked up with its first query.
  for (const person of Object.values(everybody)) await person.ask("{ viewer { id } }");
  for (const [title, { text: asIs, ids = () => [""] }] of Object.entries(documents)) {
    // A text of its own, because other test files share the process.
    const text = `${asIs} # compiled here`;
    const before = await compiled();
    const requests = Object.entries(everybody).flatMap(([who, person]) =>
      ids().map((id) => ({ who, person, id })),
    );
    const ask = ({ person, id }: (typeof requests)[number]) =>
      world.statements(() => person.ask(text, id === "" ? {} : { id }));
    // With another text, so that each is planned.
    const planned = new Map<string, { text: string; count: number }>();
    for (const [index, one] of requests.entries()) {
      const { result, count } = await world.statements(() =>
        one.person.ask(`${text} # ${title} ${index}`, one.id === "" ? {} : { id: one.id }),
      );
      planned.set(one.who + one.id, { text: textOf(result), count });
    }
    for (let round = 0; round < 3; round += 1)
      for (const one of requests) {
        const { result, count } = await ask(one);
        const { who, id } = one;
        expect({ title, who, id, count, text: textOf(result) }).toEqual({
          title,
          who,
          id,
          ...planned.get(who + id),
        });
      }
    expect({ title, compiled: (await compiled()) - before }).not.toEqual({ title, compiled: 0 });
  }
});

test("repeated pages are equal, and contain records that were added", async () => {
  for (const [title, text] of Object.entries(fullPages)) {
    const given = text.includes("$project") ? { project: world.project.id } : {};
    const other = text.includes("$project") ? { project: world.quiet.id } : {};
    const first = textOf(await world.owen.ask(text, given));
    for (const one of [other, given, other]) expect((await world.owen.ask(text, one)).errors).toBeUndefined();
    expect({ title, text: textOf(await world.owen.ask(text, given)) }).toEqual({ title, text: first });
  }
  const text = documents["a list with a filter"]!.text;
  const count = async () => (await world.owen.get(text, { id: world.project.id })).leads.length;
  const were = await count();
  await createLead(world.owen, { projectId: world.project.id, name: "Another Ada" });
  expect(await count()).toBe(were + 1);
});

test("an id that was equal in all requests is not compiled into the query", async () => {
  const text = "query Same($id: ID!) { lead(id: $id) { id } }";
  const { open, sams, maxs } = world.leads;
  const before = await compiled();
  const ask = async ({ id }: { id: string }) => expect((await world.owen.get(text, { id })).lead.id).toBe(id);
  for (let n = 0; n < 5; n += 1) await ask(open);
  // Compiled for this id only.
  expect((await compiled()) - before).toBe(1);
  for (const lead of [sams, open, maxs, sams, open]) await ask(lead);
  expect((await compiled()) - before).toBe(1);
});

test("a query is compiled for a constant id until another one is requested", async () => {
  const text =
    "query Two($project: ID!, $lead: ID!) { project(id: $project) { title } lead(id: $lead) { id } }";
  const { open, sams } = world.leads;
  const ask = async (project: { id: string }, lead: { id: string }) => {
    const variables = { project: project.id, lead: lead.id };
    const answer = await world.owen.ask(text, variables);
    expect(textOf(answer)).toBe(
      textOf(await world.owen.ask(`${text} # planned ${project.id} ${lead.id}`, variables)),
    );
  };
  const { project, quiet } = world;
  for (const lead of [open, open, sams, open, sams]) await ask(project, lead);
  for (const lead of [open, sams, open]) await ask(quiet, lead);
  for (const lead of [open, sams]) await ask(project, lead);
});

test("a lead that is invisible, unknown or deleted has the same response as with the plan", async () => {
  const text = "query Gone($id: ID!) { lead(id: $id) { id name } }";
  const { open, sams, foreign } = world.leads;
  for (const { id } of [open, sams, open, sams, open]) await world.owen.get(text, { id });
  expect(await world.owen.get(text, { id: foreign.id })).toEqual({ lead: null });
  for (const id of ["nothing", "", 7, null, ["a"]]) {
    const planned = await world.owen.ask(`${text} # planned`, { id });
    expect(textOf(await world.owen.ask(text, { id }))).toBe(textOf(planned));
  }
  expect((await world.anonymous.ask(text, { id: open.id })).errors).toMatchObject([
    { path: ["lead"], extensions: { code: "UNAUTHENTICATED" } },
  ]);
});

test("an error of the database has its path, and is not retried", async () => {
  const text = "query Refused($id: ID!) { leads(filter: { projectIds: [$id] }, first: 3) { id } }";
  for (const { id } of [world.project, world.quiet, world.project, world.quiet])
    await world.owen.get(text, { id });
  const { result, count } = await world.statements(() => world.owen.ask(text, { id: "no such project" }));
  const planned = await world.owen.ask(`${text} # planned`, { id: "no such project" });
  expect(textOf(result)).toBe(textOf(planned));
  expect(count).toBeLessThanOrEqual(1);
});

test("pages of several statements belong to the viewer, also when a statement depends on an earlier one", async () => {
  const people = { owen: world.owen, sam: world.sam };
  const given = { project: world.project.id };
  for (const [title, page] of Object.entries(fullPages)) {
    const variables = page.includes("$project") ? given : {};
    const planned: Record<string, string> = {};
    for (const [who, person] of Object.entries(people))
      planned[who] = textOf(await person.ask(`${page} # for ${who}`, variables));
    for (let round = 0; round < 2; round += 1)
      for (const [who, person] of Object.entries(people)) {
        const answer = await person.ask(`${page} # for both`, variables);
        expect({ title, who, text: textOf(answer) }).toEqual({ title, who, text: planned[who] });
      }
  }
});

test("results that depend on the location of the viewer are planned for each viewer", async () => {
  const before = await compiled();
  const text = "{ publicProjects(first: 3, sort: DISTANCE) { id } }";
  for (let n = 0; n < 4; n += 1) await world.owen.ask(text);
  expect(await compiled()).toBe(before);
});

test("distinguishes variables that are not ids by value, including sizes", async () => {
  const text =
    "query Sized($first: Int, $status: [LeadStatus!]) { leads(first: $first, filter: { status: $status }) { id status } }";
  for (let round = 0; round < 4; round += 1)
    for (const [first, status, most] of [
      [1, ["NEW"], 1],
      [2, ["NEW"], 2],
      [2, ["COLD"], 0],
      [undefined, undefined, 10],
    ] as const) {
      const { leads } = await world.owen.get(text, { first, status });
      expect(leads.length).toBeLessThanOrEqual(most);
      expect(leads.length > 0).toBe(most > 0);
    }
});
