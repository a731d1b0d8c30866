/** A record is deleted while somebody else adds a related record: one of the two gets an error. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { PoolClient } from "pg";
import { createLead, startPortfolio, type Portfolio } from "../harness/portfolio.ts";
import { type Create, createIn, mutationOf } from "../harness/records.ts";
import { until } from "../harness/until.ts";

let world: Portfolio;
let create: Create;

beforeAll(async () => {
  world = await startPortfolio();
  create = createIn(world.owen);
});
afterAll(() => world.stop());

/** Waits until the statement of the transaction waits for a lock. */
const waiting = () =>
  until(async () => {
    const { rows } = await world.owner.query(
      "select count(*)::int as waiting from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()",
    );
    return rows[0].waiting > 0;
  });

async function inTransaction(work: (client: PoolClient) => Promise<void>): Promise<void> {
  const client = await world.owner.connect();
  try {
    await client.query("begin");
    await work(client);
    await client.query("commit");
  } finally {
    client.release();
  }
}

let count = 0;
const plan = () => create("createFloorPlan", { projectId: world.project.id, title: `Plan ${(count += 1)}` });
const unit = (floorPlanId: string) =>
  world.owen.ask(mutationOf("createUnit"), {
    input: { projectId: world.project.id, title: "Home", number: `${(count += 1)}`, floorPlanId },
  });
const remove = (id: string) => world.owen.ask(mutationOf("deleteFloorPlan"), { input: { id } });

test("a row added while its parent is being deleted is refused once the deletion commits", async () => {
  const floorPlanId = await plan();
  let adding!: ReturnType<typeof unit>;
  await inTransaction(async (client) => {
    await client.query("delete from app_public.floor_plans where id = $1", [floorPlanId]);
    adding = unit(floorPlanId);
    await waiting();
  });
  expect((await adding).errors?.[0]?.extensions).toMatchObject({ code: "NOT_FOUND", field: "floorPlanId" });
});

test("and added when the deletion is rolled back", async () => {
  const floorPlanId = await plan();
  let adding!: ReturnType<typeof unit>;
  await inTransaction(async (client) => {
    await client.query("delete from app_public.floor_plans where id = $1", [floorPlanId]);
    adding = unit(floorPlanId);
    await waiting();
    await client.query("rollback; begin");
  });
  expect((await adding).errors).toBeUndefined();
});

test("a deletion waits for rows that are being added, and is refused because of them", async () => {
  const floorPlanId = await plan();
  let deleting!: ReturnType<typeof remove>;
  await inTransaction(async (client) => {
    await client.query(
      "insert into app_public.units (project_id, title, floor_plan_id) values ($1, 'Home', $2)",
      [world.project.id, floorPlanId],
    );
    deleting = remove(floorPlanId);
    await waiting();
  });
  expect((await deleting).errors?.[0]?.extensions).toMatchObject({
    code: "CONFLICT",
    dependents: { units: 1 },
  });
});

test("related records are deleted with a lead, also those that were being added", async () => {
  const { id: leadId } = await createLead(world.owen, { projectId: world.project.id, name: "Gone Girl" });
  let deleting!: Promise<unknown>;
  await inTransaction(async (client) => {
    await client.query(
      "insert into app_public.lead_notes (lead_id, project_id, organization_id, text) select id, project_id, organization_id, 'Late' from app_public.leads where id = $1",
      [leadId],
    );
    deleting = world.owen.ask(mutationOf("deleteLead"), { input: { id: leadId } });
    await waiting();
  });
  await deleting;
  const { rows } = await world.owner.query(
    "select (select deleted_at is not null from app_public.leads where id = $1) as lead, array(select deleted_at is not null from app_public.lead_notes where lead_id = $1) as notes",
    [leadId],
  );
  expect(rows).toEqual([{ lead: true, notes: [true] }]);
});

test("a row moved to a parent that is deleted concurrently is refused", async () => {
  const [first, second] = [await plan(), await plan()];
  const { data } = await unit(first);
  let moving!: ReturnType<typeof unit>;
  await inTransaction(async (client) => {
    await client.query("delete from app_public.floor_plans where id = $1", [second]);
    moving = world.owen.ask(mutationOf("updateUnit"), {
      input: { id: data.createUnit.id, floorPlanId: second },
    });
    await waiting();
  });
  expect((await moving).errors?.[0]?.extensions).toMatchObject({ code: "NOT_FOUND", field: "floorPlanId" });
});
