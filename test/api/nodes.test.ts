/** node and nodes: records by their ids, for the caches of clients. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import type { Person } from "../harness/api.ts";
import { createProject, startWorld, type World } from "../harness/world.ts";

let world: World;
beforeAll(async () => {
  world = await startWorld();
});
afterAll(async () => world.stop());

const node = "query ($id: ID!) { node(id: $id) { __typename id } }";
const nodes =
  "query ($ids: [ID!]!) { nodes(ids: $ids) { type: __typename id ... on Lead { name } ... on Project { title } } }";
const createLead = async (person: Person, projectId: string): Promise<string> => {
  const data = await person.get("mutation ($input: CreateLeadInput!) { createLead(input: $input) { id } }", {
    input: { projectId, name: `Lead ${randomUUID()}` },
  });
  return data.createLead.id;
};

test("a record of any type is found by its id, with the fields selected for that type", async () => {
  const lead = await createLead(world.owen, world.project.id);
  expect(await world.owen.get(node, { id: lead })).toEqual({ node: { __typename: "Lead", id: lead } });
  expect(
    await world.owen.get(
      "query ($id: ID!) { node(id: $id) { id ... on Lead { name project { title } } ... on Unit { number } } }",
      { id: lead.toUpperCase() },
    ),
  ).toMatchObject({ node: { id: lead, project: { title: "Harbour View" } } });
  const ids = [lead, world.project.id, randomUUID(), world.harbour.id, lead];
  const found = await world.owen.get(nodes, { ids });
  expect(found.nodes.map((one: any) => one?.type)).toEqual([
    "Lead",
    "Project",
    undefined,
    "Organization",
    "Lead",
  ]);
  expect(found.nodes.map((one: any) => one?.id)).toEqual([
    lead,
    world.project.id,
    undefined,
    world.harbour.id,
    lead,
  ]);
  expect(found.nodes[1].title).toBe("Harbour View");
});

test("a record that is invisible to the viewer is null, like an unknown id", async () => {
  const lead = await createLead(world.owen, world.project.id);
  const { rows } = await world.owner.query("select id from app_public.events where subject_id = $1", [lead]);
  const theirs = await createProject(world.olga, { organizationId: world.summit.id, title: "Summit Peak" });
  const hidden = await createLead(world.olga, theirs.id);
  const own = [lead, world.project.id, rows[0].id];
  const foreign = [hidden, theirs.id];
  const readers: [Person, string[], string[]][] = [
    [world.owen, own, foreign],
    [world.ada, own, foreign],
    [world.max, own.slice(0, 2), foreign],
    [world.olga, foreign, own],
    [await world.signUp("Sam Stranger"), [], [...own, ...foreign]],
    [world.anonymous, [], [...own, ...foreign]],
  ];
  for (const [person, seen, unseen] of readers) {
    const found = await person.get(nodes, { ids: [...seen, ...unseen] });
    expect(found.nodes.map((one: any) => one?.id ?? null)).toEqual([...seen, ...unseen.map(() => null)]);
    for (const id of unseen)
      for (const query of [node, "query ($id: ID!) { node(id: $id) { __typename } }"])
        // Repeated, so that a compiled query would be used.
        for (let n = 0; n < 4; n++) {
          const { result, texts } = await world.statements(() => person.ask(query, { id }));
          expect(result.data).toEqual({ node: null });
          // No data of the record are read.
          expect(
            texts.filter((text) => /app_(public|hidden)/.test(text) && !/seen_nodes|access_of/.test(text)),
          ).toEqual([]);
        }
  }
});

test("a query for another record or by another viewer is looked up again", async () => {
  const leads = [
    await createLead(world.owen, world.project.id),
    await createLead(world.owen, world.project.id),
  ];
  const ask = "query Again($id: ID!) { node(id: $id) { __typename id ... on Lead { name } } }";
  for (let n = 0; n < 4; n++)
    for (const id of [...leads, world.project.id]) {
      expect((await world.owen.get(ask, { id })).node.id).toBe(id);
      expect((await world.olga.get(ask, { id })).node).toBeNull();
    }
});

test("the number of statements depends on the number of types, not of records", async () => {
  const leads: string[] = [];
  for (let n = 0; n < 6; n++) leads.push(await createLead(world.owen, world.project.id));
  const statementsFor = async (ids: string[]) => {
    await world.owen.get(nodes, { ids });
    return (await world.statements(() => world.owen.get(nodes, { ids }))).count;
  };
  const few = await statementsFor(leads.slice(0, 2));
  expect(await statementsFor(leads)).toBe(few);
  expect(few).toBeLessThanOrEqual(3);
});

test("a visitor finds public records", async () => {
  const open = await createProject(world.owen, {
    organizationId: world.harbour.id,
    title: "Open Fields",
    visibility: "PUBLIC",
    address: { locality: "Toronto", country: "CA" },
  });
  expect(await world.anonymous.get(nodes, { ids: [open.id, world.project.id] })).toEqual({
    nodes: [{ type: "Project", id: open.id, title: "Open Fields" }, null],
  });
});

test("invalid ids and too many ids are refused", async () => {
  for (const id of ["harbour-view", "", "1", `${randomUUID()}0`])
    expect(await world.owen.refused(node, { id })).toMatchObject({ code: "BAD_USER_INPUT", field: "id" });
  const ids = Array.from({ length: 101 }, () => randomUUID());
  expect(await world.owen.refused(nodes, { ids })).toMatchObject({ code: "BAD_USER_INPUT", field: "ids" });
  expect((await world.owen.get(nodes, { ids: ids.slice(1) })).nodes).toEqual(ids.slice(1).map(() => null));
  expect(await world.owen.get(nodes, { ids: [] })).toEqual({ nodes: [] });
});

test("a deletion returns the nodes to remove from a cache", async () => {
  const lead = await createLead(world.owen, world.project.id);
  const deletion =
    "mutation ($id: ID!) { deleteLead(input: { id: $id }) { id deleted deletedId deletedType } }";
  expect(await world.owen.get(deletion, { id: lead })).toEqual({
    deleteLead: { id: lead, deleted: true, deletedId: lead, deletedType: "Lead" },
  });
  expect(await world.owen.get(node, { id: lead })).toEqual({ node: null });
  // A deletion with a function of its own and a larger payload.
  const { createLeadSource: source } = await world.owen.get(
    "mutation ($input: CreateLeadSourceInput!) { createLeadSource(input: $input) { id } }",
    { input: { projectId: world.project.id, name: "Fair" } },
  );
  expect(
    await world.owen.get(
      "mutation ($id: ID!) { deleteLeadSource(input: { id: $id }) { deletedId deletedType reassignedLeads } }",
      source,
    ),
  ).toEqual({ deleteLeadSource: { deletedId: source.id, deletedType: "LeadSource", reassignedLeads: 0 } });
});

test("each payload of a deletion has an existing type", async () => {
  const { __schema: schema } = await world.owen.get(
    "{ __schema { types { name fields { name description } } } }",
  );
  const payloads = schema.types.filter(({ name }: any) => /^Delete\w+Payload$/.test(name));
  expect(payloads.length).toBeGreaterThan(30);
  const names = new Set(schema.types.map(({ name }: any) => name));
  for (const { name, fields } of payloads) {
    const description = fields.find((field: any) => field.name === "deletedType")?.description;
    const [, type] = /^GraphQL type of the deleted record: (\w+)\.$/.exec(description ?? "") ?? [];
    expect([name, names.has(type)]).toEqual([name, true]);
  }
});

test("ids are looked up in each table whose rows are nodes", async () => {
  const { __type: type } = await world.owen.get('{ __type(name: "Node") { possibleTypes { name } } }');
  const { rows } = await world.owner.query(
    "select pg_get_functiondef('app_hidden.node_tables'::regproc) as text",
  );
  const tables = [...rows[0].text.matchAll(/from app_public\.(\w+) r/g)].map(([, table]) => table);
  expect(tables).toHaveLength(type.possibleTypes.length);
  const names = new Set(type.possibleTypes.map(({ name }: { name: string }) => name));
  for (const view of ["BindingOffer", "UserOrganizationConnection", "SearchResult"])
    expect(names.has(view)).toBe(false);
});
