/** The portfolio list of appointments uses its indexes: it reads as many rows as it returns. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { loadAppointments } from "../../bench/data/appointments.ts";
import type { Api, Person } from "../harness/api.ts";
import { startLargeOrganization } from "../harness/largeOrganization.ts";
import { cost, explain } from "../harness/explain.ts";

let api: Api;
let owner: Person, member: Person, seller: Person;
let project: string;
let lead: string;

beforeAll(async () => {
  ({ api, owner, member, seller, project } = await startLargeOrganization(
    { leads: 20_000 },
    () => ({ leads: 2_000 }),
    (client) => loadAppointments(client, 3),
  ));
  const { rows } = await api.owner.query("select id from app_public.leads where project_id = $1 limit 1", [
    project,
  ]);
  lead = rows[0]!.id;
});
afterAll(() => api.stop());

const list =
  "query ($filter: AppointmentsFilter) { appointments(first: 50, filter: $filter) { id status startsAt } }";
const read = async (person: Person, filter: Record<string, unknown> = {}) => {
  const plan = await explain(api, person, list, { filter });
  return { cost: cost(plan, "appointments"), indexes: plan.indexes };
};

test("of an owner reads as many index rows as it returns", async () => {
  const plan = await read(owner);
  expect(plan.indexes).toContain("appointments_organization");
  expect(plan.cost).toBeLessThanOrEqual(50);
});

test("scans each status and each project separately", async () => {
  const byStatus = await read(owner, { status: ["REQUESTED", "CONFIRMED"] });
  expect(byStatus.indexes).toContain("appointments_organization_status");
  expect(byStatus.cost).toBeLessThanOrEqual(100);
  const byProject = await read(owner, { projectIds: [project] });
  expect(byProject.indexes).toContain("appointments_project");
  expect(byProject.cost).toBeLessThanOrEqual(50);
});

test("starts at the requested time", async () => {
  const to = new Date(Date.now() - 400 * 86_400_000).toISOString();
  expect((await read(owner, { startsAt: { to } })).cost).toBeLessThanOrEqual(50);
});

test("of a member reads the open projects, and of the private ones the member's own deals", async () => {
  const plan = await read(member);
  expect(plan.indexes).toContain("appointments_assignee");
  expect(plan.cost).toBeLessThanOrEqual(10 * 50);
});

test("of an affiliated seller reads the seller's own deals", async () => {
  for (const filter of [{}, { projectIds: [project] }]) {
    const plan = await read(seller, filter);
    expect(plan.indexes).toContain("appointments_assignee");
    expect(plan.cost).toBeLessThanOrEqual(10 * 50);
  }
});

test("of a non-member reads nothing", async () => {
  expect((await read(await api.signUp("Olga Outsider"))).cost).toBe(0);
});

test("of one lead uses its index", async () => {
  const query = "query ($id: ID!) { lead(id: $id) { appointments(first: 5) { id } } }";
  const plan = await explain(api, owner, query, { id: lead });
  expect(plan.indexes).toContain("appointments_lead");
  expect(cost(plan, "appointments")).toBeLessThanOrEqual(5);
});

test("of one purchase, with those of its lead, use both indexes", async () => {
  const { createBuyer: buyer } = await owner.get(
    `mutation ($input: CreateBuyerInput!) { createBuyer(input: $input) { id } }`,
    { input: { projectId: project, leadId: lead, legalName: "Bea Buyer", price: 1 } },
  );
  const query = "query ($id: ID!) { buyer(id: $id) { appointments(first: 5) { id } } }";
  const { buyer: found } = await owner.get(query, buyer);
  expect(found.appointments).toHaveLength(3);
  const plan = await explain(api, owner, query, buyer);
  expect(plan.indexes).toContain("appointments_lead");
  expect(plan.indexes).toContain("appointments_buyer");
  expect(cost(plan, "appointments")).toBeLessThanOrEqual(5);
});
