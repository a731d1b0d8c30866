/** What ends by itself has ended for whoever reads, although no job has run. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createIn, type Create } from "../harness/records.ts";
import { passTime } from "../harness/clock.ts";
import { startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
  // Something of which one record cannot be settled.
  await world.owner.query(`
    create function app_private.settle_nothing(id uuid) returns void language plpgsql as $$ begin raise exception 'never'; end $$;
    insert into app_private.deadline_kinds values ('nothing', 'app_private.settle_nothing')`);
});
afterAll(() => world.stop());

async function heldUnit(number: string, hours = 1): Promise<string> {
  const id = await create("createUnit", {
    projectId: world.project.id,
    title: `Home ${number}`,
    number,
    status: "AVAILABLE",
    price: "400000",
  });
  await world.owner.query(
    "select app_private.take_claim($1, null, 'HOLD', 'hold', uuidv7(), now() + $2 * interval '1 hour')",
    [id, hours],
  );
  return id;
}
const status = async (id: string) =>
  (await world.owen.get(`query ($id: ID!) { unit(id: $id) { status } }`, { id })).unit.status;
const stored = async (id: string) =>
  (await world.owner.query("select status from app_public.units where id = $1", [id])).rows[0].status;

test("a reader finds what is over, with its event, and what is not over as it was", async () => {
  const [short, long] = [await heldUnit("1"), await heldUnit("2", 3)];
  expect(await status(short)).toBe("HELD");
  await passTime(world.owner, "2 hours");
  expect(await stored(short)).toBe("HELD");
  expect([await status(short), await status(long)]).toEqual(["AVAILABLE", "HELD"]);
  const { rows } = await world.owner.query(
    "select name, actor_type from app_public.events where subject_id = $1 order by id desc limit 1",
    [short],
  );
  expect(rows).toEqual([{ name: "unit.status_changed", actor_type: "SYSTEM" }]);
  expect((await world.owner.query("select kind from app_hidden.deadlines")).rows).toEqual([
    { kind: "claim" },
  ]);
});

test("lists and filters find it, and so does what is changed in a transaction", async () => {
  const id = await heldUnit("3");
  await passTime(world.owner, "2 hours");
  const { unitsConnection } = await world.owen.get(
    `query ($project: ID!) { unitsConnection(projectId: $project, filter: { status: [HELD] }) { totalCount } }`,
    { project: world.project.id },
  );
  expect(unitsConnection.totalCount).toBe(0);
  const again = await heldUnit("4");
  await passTime(world.owner, "2 hours");
  const { updateUnit } = await world.owen.get(
    `mutation ($id: ID!) { updateUnit(input: { id: $id, status: OFF_MARKET }) { status } }`,
    { id: again },
  );
  expect([updateUnit.status, await stored(id)]).toEqual(["OFF_MARKET", "AVAILABLE"]);
});

test("a hundred readers at once all find it", async () => {
  const ids = await Promise.all(Array.from({ length: 60 }, (_, i) => heldUnit(`many ${i}`)));
  await passTime(world.owner, "2 hours");
  const seen = await Promise.all(Array.from({ length: 100 }, (_, i) => status(ids[i % ids.length]!)));
  expect(new Set(seen)).toEqual(new Set(["AVAILABLE"]));
  const { rows } = await world.owner.query(
    "select count(*)::int as releases from app_hidden.claims where unit_id = any ($1) and release_reason = 'EXPIRED'",
    [ids],
  );
  expect(rows).toEqual([{ releases: 60 }]);
});

test("one that cannot be settled keeps nobody from reading, and is tried again", async () => {
  const id = await heldUnit("5");
  await world.owner.query(
    "insert into app_hidden.deadlines (kind, record_id, due_at) values ('nothing', uuidv7(), now() - interval '1 year')",
  );
  await passTime(world.owner, "2 hours");
  expect(await status(id)).toBe("AVAILABLE");
  const { rows } = await world.owner.query(
    "select failures, due_at > now() as later from app_hidden.deadlines where kind = 'nothing'",
  );
  expect(rows).toEqual([{ failures: 1, later: true }]);
});

test("with nothing due, reading takes one statement", async () => {
  const id = await heldUnit("6");
  const { count } = await world.statements(() => status(id));
  expect(count).toBe(1);
});
