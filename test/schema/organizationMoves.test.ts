/** The end of a move of an organization to another installation, as transactions see it that run meanwhile. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { createPeople, type People } from "../harness/people.ts";

let database: TestDatabase;
let people: People;
let organization: string;
let mover: Client;
let member: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  people = createPeople(database.ownerUrl);
  organization = await people.organization("Homes", { [await people.person("Ada")]: "OWNER" });
  mover = new Client({ connectionString: database.ownerUrl });
  member = new Client({ connectionString: database.ownerUrl });
  await mover.connect();
  await member.connect();
});
afterAll(async () => {
  await mover.end();
  await member.end();
  await people.end();
  await database.drop();
});

test("nothing is written at the former installation by a transaction that began before the commit", async () => {
  await mover.query("select pg_advisory_lock(7528006, app_private.move_lock($1))", [organization]);
  await mover.query("select app_private.pause_for_move($1, 'https://elsewhere.example')", [organization]);
  await mover.query("begin");
  await mover.query("update app_private.organization_moves set status = 'SWITCHING'");
  await mover.query("select app_private.put_aside_organization($1)", [organization]);
  // It begins after the switch was recorded, and does not see it.
  await member.query("begin");
  const { rows: seen } = await member.query("select status from app_private.organization_moves");
  expect(seen).toEqual([{ status: "PAUSED" }]);
  await mover.query("commit");

  const { rows: times } = await mover.query<{ now: string }>("select clock_timestamp()::text as now");
  const isOver = async () => {
    const { rows } = await mover.query<{ over: boolean }>("select app_private.end_move($1, $2) as over", [
      organization,
      times[0]!.now,
    ]);
    return rows[0]!.over;
  };
  expect(await isOver()).toBe(false);
  const write = "update app_private.event_counters set last_sequence = last_sequence where stream_id = $1";
  await expect(member.query(write, [organization])).rejects.toMatchObject({
    code: "PLAT0",
    message: "This organization is on another server; send the request to its url.",
  });
  await member.query("rollback");
  // Those that begin later see the switch.
  await member.query("begin");
  expect(await isOver()).toBe(true);
  await member.query("rollback");
});
