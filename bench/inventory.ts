/**
 * Duration of updateUnits for 5,000 units, and of a page of 50 units with their plans and lots, over HTTPS. Limit: 2
 * s for the 5,000 units. Run: npm run bench -- inventory
 */
import type { TestDatabase } from "../test/harness/database.ts";
import { startWorld } from "../test/harness/world.ts";
import { percentile, time, withDatabase } from "./data/cluster.ts";
import { sized } from "./data/size.ts";

/** Units of the project; set by BENCH_SIZE. */
const units = sized(5_000, 20);

async function report(name: string, run: () => Promise<unknown>, most: number): Promise<void> {
  const times = await time(run, { warm: 1, most, seconds: 15 });
  console.log(
    `${name.padEnd(44)} median ${percentile(times, 0.5).toFixed(1).padStart(7)} ms  worst ${Math.max(...times)
      .toFixed(1)
      .padStart(7)} ms`,
  );
}

export default (): Promise<void> => withDatabase(inventory);

async function inventory(database: TestDatabase): Promise<void> {
  const world = await startWorld(database);
  try {
    await world.owner.query(
      `with plan as (insert into app_public.floor_plans (project_id, title) values ($1, 'P') returning id),
         lot as (insert into app_public.lots (project_id, number, multi_unit) values ($1, '1', true) returning id)
       select plan.id, lot.id from plan, lot`,
      [world.project.id],
    );
    await world.owner.query(
      `insert into app_public.units (project_id, title, status, price, floor_plan_id, lot_id)
       select $1, 'U' || i, 'AVAILABLE', 100, (select id from app_public.floor_plans), (select id from app_public.lots) from generate_series(1, $2::int) i`,
      [world.project.id, units],
    );
    await world.owner.query("analyze");
    const input = { projectId: world.project.id, filter: {}, priceDeltaPercent: 1 };
    await report(
      `updateUnits, ${units} by filter, ids answered`,
      () =>
        world.owen.get(`mutation ($input: UpdateUnitsInput!) { updateUnits(input: $input) { id } }`, {
          input,
        }),
      3,
    );
    await report(
      "50 units with plan and lot, their owner",
      () =>
        world.owen.get(
          `query ($id: ID!) { project(id: $id) { units(first: 50) {
          title price originalListPrice ppsf bedrooms metadata floorPlan { title } lot { number } } } }`,
          { id: world.project.id },
        ),
      50,
    );
  } finally {
    await world.stop();
  }
}
