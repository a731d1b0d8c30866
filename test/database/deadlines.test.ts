/** Expired records are reported as expired to every reader, even if no job has run. */
import { afterAll, beforeAll, describe, expect, test } from "@jest/globals";
import { createIn, type Create } from "../harness/records.ts";
import { passTime } from "../harness/clock.ts";
import { until } from "../harness/until.ts";
import { createProject, startWorld, type World } from "../harness/world.ts";

let world: World;
let create: Create;

beforeAll(async () => {
  world = await startWorld();
  create = createIn(world.owen);
  // A kind of deadline of which one record cannot expire.
  await world.owner.query(`
    create function app_private.expire_nothing(id uuid) returns void language plpgsql as $$ begin raise exception 'never'; end $$;
    insert into app_private.deadline_kinds values ('nothing', 'app_private.expire_nothing')`);
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

test("a reader sees expired records as expired, with an event, and others unchanged", async () => {
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

test("lists and filters find it, as do changes in a transaction", async () => {
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

test("a hundred concurrent readers all find it", async () => {
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

test("a deadline that fails does not block readers, and is retried", async () => {
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

describe("while due records are locked", () => {
  const title = `query ($id: ID!) { project(id: $id) { title } }`;

  test.each([
    ["a unit", "select from app_public.units where id = $1 for update", "AVAILABLE"],
    ["its claim", "select from app_hidden.claims where unit_id = $1 for update", "AVAILABLE"],
    ["what says so", "select from app_hidden.deadlines where kind = 'claim' for update", "HELD"],
    ["all claims, to write", "lock app_hidden.claims in share mode", "HELD"],
  ])("%s, nobody waits, and they expire as soon as possible", async (what, lock, meanwhile) => {
    const [id, other] = [await heldUnit(`locked by ${what}`), await heldUnit(`not locked by ${what}`)];
    const peak = await createProject(world.olga, { organizationId: world.summit.id, title: `Peak, ${what}` });
    await passTime(world.owner, "2 hours");
    const client = await world.owner.connect();
    try {
      await client.query("begin");
      await client.query(lock, lock.includes("$1") ? [id] : []);
      for (const person of [world.olga, world.owen, world.anonymous]) await person.get("{ viewer { id } }");
      expect(await world.olga.get(title, peak)).toEqual({ project: { title: `Peak, ${what}` } });
      await create("createProject", { organizationId: world.summit.id, title: "Peak" }, world.olga);
      // This record is read as it was, like all others of the organization that are locked.
      expect(await status(id)).toBe("HELD");
      expect(await status(other)).toBe(meanwhile);
      const { rows } = await client.query(
        "select count(*)::int as open from app_hidden.claims where unit_id = $1",
        [id],
      );
      expect(rows).toEqual([{ open: 1 }]); // the lock is still held: nobody had to wait for it
    } finally {
      await client.query("rollback");
      client.release();
    }
    await until(
      () => status(id),
      (found) => found === "AVAILABLE",
    );
    expect(await status(other)).toBe("AVAILABLE");
  });

  test("many expired records of another organization cost a reader little", async () => {
    const ids = await Promise.all(Array.from({ length: 30 }, (_, i) => heldUnit(`of others ${i}`)));
    await passTime(world.owner, "2 hours");
    const client = await world.owner.connect();
    try {
      await client.query("begin");
      await client.query("select from app_public.units where id = any ($1) for update", [ids]);
      await world.olga.get("{ viewer { id } }");
      const { rows } = await world.owner.query(
        "select count(*)::int as left from app_hidden.deadlines where record_id in (select id from app_hidden.claims where unit_id = any ($1)) and due_at <= now()",
        [ids],
      );
      expect(rows[0].left).toBeGreaterThan(0); // it did not process all of them
    } finally {
      await client.query("rollback");
      client.release();
    }
    await until(
      () => status(ids[0]!),
      (found) => found === "AVAILABLE",
    );
  });
});

test("expired records of the viewer's organization are processed first, however many others have", async () => {
  const [first] = await Promise.all(Array.from({ length: 60 }, (_, i) => heldUnit(`much ${i}`)));
  const peak = await createProject(world.olga, { organizationId: world.summit.id, title: "Own" });
  const id = await create(
    "createUnit",
    { projectId: peak.id, number: "1", title: "Own", status: "AVAILABLE", price: "1" },
    world.olga,
  );
  await world.owner.query(
    "select app_private.take_claim($1, null, 'HOLD', 'hold', uuidv7(), now() + interval '1 hour')",
    [id],
  );
  await passTime(world.owner, "2 hours");
  const seen = await world.olga.get(`query ($id: ID!) { unit(id: $id) { status } }`, { id });
  expect(seen.unit.status).toBe("AVAILABLE");
  expect(await status(first!)).toBe("AVAILABLE");
});

test("if nothing has expired, reading takes one statement", async () => {
  const id = await heldUnit("6");
  // Each reader processes some of the records that other tests have left.
  await until(async () => {
    await status(id);
    const { rowCount } = await world.owner.query("select from app_hidden.deadlines where due_at <= now()");
    return rowCount === 0;
  });
  const { count } = await world.statements(() => status(id));
  expect(count).toBe(1);
});
