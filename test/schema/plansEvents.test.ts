/**
 * Plans of the events of an organization with realistic numbers of rows: rows that are read, and function calls per
 * event.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { loadEventYears } from "../../bench/data/eventYears.ts";
import { startApi, type Api, type Person } from "../harness/api.ts";
import { explain, plan, scanned, touched, type Explained } from "../harness/explain.ts";
import { programOf } from "../harness/world.ts";

/** Can be set to test a larger size. */
const events = Number(process.env.EVENTS ?? 30_000);
const projects = 20;
const scopes = ["org.member", "project.read", "inventory.read"];
let api: Api;
let owner: Person, member: Person, seller: Person, buyer: Person, program: Person;
let organization: string, project: string;

beforeAll(async () => {
  api = await startApi();
  [owner, member, seller, buyer] = (await Promise.all(
    ["Olive Owner", "Mina Member", "Sally Seller", "Bo Buyer"].map(api.signUp),
  )) as [Person, Person, Person, Person];
  const client = new Client({ connectionString: api.database.ownerUrl });
  await client.connect();
  try {
    ({ organization, project } = await loadEventYears(
      client,
      { owner: owner.id!, member: member.id!, seller: seller.id!, buyer: buyer.id! },
      { events, projects },
    ));
    // The function for single events counts its calls, and returns false.
    await client.query(`create sequence public.calls; grant usage on sequence public.calls to plat_user;
      create or replace function app_hidden.sees_subject(subject_type text, subject_id uuid) returns boolean
        language plpgsql stable as $$ begin perform nextval('public.calls'); return false; end $$`);
  } finally {
    await client.end();
  }
  program = await programOf(api, owner, { scopes });
}, 600_000);
afterAll(() => api.stop());

const one = async (text: string): Promise<number> => Number((await api.owner.query(text)).rows[0].n);
const count = (where: string) => one(`select count(*) as n from app_public.events where ${where}`);

interface Read extends Explained {
  /** Number of events for which the function was called. */
  calls: number;
  /** Tables of which nearly all rows were read. */
  whole: string[];
}

async function read(person: Person, query: string, variables: Record<string, unknown> = {}): Promise<Read> {
  const settings: Record<string, string> =
    person === program ? { "plat.user_id": owner.id!, "plat.scopes": scopes.join(",") } : {};
  await api.owner.query("alter sequence public.calls restart");
  const explained = await explain(api, person, query, variables, settings);
  const calls = await one("select case when is_called then last_value else 0 end as n from public.calls");
  // Executes and explains the query.
  return {
    ...explained,
    calls: calls / 2,
    whole: scanned(explained.nodes).filter((table) => /^(events|leads|units|tasks)$/.test(table)),
  };
}

const list =
  "query ($filter: EventsFilter) { events(first: 50, filter: $filter) { sequence name data changes } }";
const total = "query ($filter: EventsFilter) { eventsConnection(filter: $filter) { totalCount } }";
/** Each partition is read up to its first row. */
const page = 50 + 10;
const records = ["leads", "units", "appointments", "phone_calls", "tasks", "workflow_executions", "buyers"];

test("an owner's page is read along the index, without reading records", async () => {
  for (const variables of [
    {},
    { filter: { afterSequence: String(events / 2) } },
    { filter: { projectIds: [project] } },
  ]) {
    const explained = await read(owner, list, variables);
    expect(explained).toMatchObject({ calls: 0, whole: [] });
    expect(explained.touched("events")).toBeLessThanOrEqual(page);
  }
  const explained = await read(owner, total);
  expect(explained.calls).toBe(0);
  for (const table of records) expect(explained.touched(table)).toBe(0);
});

test("a member's page reads one record per event, by its key", async () => {
  const few = await count("subject_type in ('organization_invite', 'buyer')");
  for (const filter of [null, { afterSequence: String(events / 2) }, { projectIds: [project] }]) {
    const explained = await read(member, list, { filter });
    expect(explained.whole).toEqual([]);
    // In addition to the page: leads of others in the private project, and events for admins only.
    expect(explained.touched("events")).toBeLessThanOrEqual(page * 1.5);
    for (const table of records) expect(explained.touched(table)).toBeLessThanOrEqual(page * 1.5);
    expect(explained.calls).toBeLessThanOrEqual(page / 2);
  }
  // All events: one record each by its key, and the function only for types with few events.
  const explained = await read(member, total);
  expect(explained.whole.filter((table) => table !== "events")).toEqual([]);
  expect(explained.touched("leads")).toBeLessThanOrEqual(events);
  expect(explained.calls).toBe(few);
  const { totalCount } = (await member.get(total)).eventsConnection;
  expect(totalCount).toBeGreaterThan(events * 0.9);
  expect(totalCount).toBeLessThan(events - few);
});

test("a restricted token skips unreadable events without a call for each", async () => {
  const few = await count("subject_type in ('organization_invite', 'buyer')");
  const explained = await read(program, list);
  expect(explained.whole).toEqual([]);
  const { sequence } = (await program.get(list)).events.at(-1);
  expect(explained.touched("events")).toBeLessThanOrEqual(Number(sequence) + 10);
  expect(explained.calls).toBeLessThanOrEqual(few);
  const units = await count("subject_type = 'unit'");
  expect((await program.get(total)).eventsConnection.totalCount).toBe(units);
});

test("a seller of one project reads its events only, with calls for the types with few events", async () => {
  const ofProject = await count(`project_id = '${project}'`);
  const few = await count(`project_id = '${project}' and subject_type = 'buyer'`);
  expect(few).toBeLessThan(ofProject / 5);
  const filter = { projectIds: [project] };
  for (const query of [list, total]) {
    const explained = await read(seller, query, { filter });
    expect(explained.whole).toEqual([]);
    // A list of projects first determines how far each must be read.
    expect(explained.calls).toBeLessThanOrEqual(2 * few);
    expect(explained.touched("events")).toBeLessThanOrEqual(2 * ofProject + page);
  }
  // All units, and their own leads with related records.
  const { events: seen } = await seller.get(
    "query ($filter: EventsFilter) { events(first: 1000, filter: $filter) { name } }",
    { filter },
  );
  expect(seen.length).toBeGreaterThan(0);
  expect(seen.length).toBeLessThan(ofProject);
  // Their portfolio is their own organization.
  expect((await read(seller, list)).touched("events")).toBeLessThanOrEqual(page);
  expect((await seller.get(list)).events).toEqual([]);
});

test("a buyer sees none, without reading any", async () => {
  for (const query of [list, total]) {
    const explained = await read(buyer, query);
    expect(explained).toMatchObject({ calls: 0, whole: [] });
    expect(explained.touched("events")).toBe(0);
  }
  const filter = { projectIds: [project] };
  expect((await read(buyer, list, { filter })).calls).toBe(0);
  expect((await buyer.get(list, { filter })).events).toEqual([]);
  expect((await buyer.get(list, { filter: { organizationIds: [organization] } })).events).toEqual([]);
});

test("a page of executions reads one lead per execution, by its key", async () => {
  const client = new Client({ connectionString: api.database.authenticatorUrl });
  await client.connect();
  try {
    for (const { id } of [owner, member]) {
      const nodes = await plan(
        client,
        id,
        "select id from app_public.workflow_executions order by id desc limit 50",
      );
      expect(nodes[0]!["Actual Rows"]).toBe(50);
      expect(scanned(nodes)).toEqual([]);
      expect(touched(nodes, "leads")).toBeLessThanOrEqual(page * 1.5);
    }
  } finally {
    await client.end();
  }
});
