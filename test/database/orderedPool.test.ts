import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { DatabaseError } from "pg";
import { withinShare } from "../../src/database/orderedPool.ts";
import { toCodedError } from "../../src/http/toCodedError.ts";
import { FairSemaphore } from "../../src/admission/fairSemaphore.ts";
import { partyOf } from "../../src/admission/party.ts";
import { startFusedWorld, type FusedWorld } from "./fusedWorld.ts";

let world: FusedWorld;
beforeAll(async () => {
  world = await startFusedWorld();
});
afterAll(() => world.close());

const own = "select pg_backend_pid() as pid";
const refusal = "do $$ begin raise exception using errcode = 'PLAT0', message = 'not now'; end $$";

test("a refused statement does not cost a connection", async () => {
  const { pool } = world.open({ max: 1 });
  const [before] = (await pool.query(own)).rows;
  for (const text of [refusal, "select 1 / 0", "nonsense", { text: "select $1::int", values: ["x"] }])
    await expect(pool.query(text as string)).rejects.toBeInstanceOf(DatabaseError);
  // Also while other statements wait for the connection during the error.
  const outcomes = await Promise.allSettled(Array.from({ length: 20 }, () => pool.query(refusal)));
  expect(outcomes.every(({ status }) => status === "rejected")).toBe(true);
  expect((await pool.query(own)).rows).toEqual([before]);
  expect(pool.listenerCount("error")).toBeGreaterThan(0);
});

test("of several idle connections, the most used one is used again", async () => {
  const { pool } = world.open({ max: 3 });
  const [before] = (await pool.query(own)).rows;
  await pool.query(own);
  const held = [await pool.connect(), await pool.connect(), await pool.connect()];
  // The others become idle after it.
  for (const client of held) client.release();
  expect(pool.idleCount).toBe(3);
  expect((await pool.query(own)).rows).toEqual([before]);
});

test("a connection that is lost, or left inside a transaction, is replaced", async () => {
  const { pool } = world.open({ max: 1 });
  const pids = new Set([(await pool.query(own)).rows[0].pid]);
  await expect(pool.query("begin; select 1 / 0")).rejects.toMatchObject({ code: "22012" });
  pids.add((await pool.query(own)).rows[0].pid);
  await pool.query("begin");
  pids.add((await pool.query(own)).rows[0].pid);
  await expect(pool.query("select pg_terminate_backend(pg_backend_pid())")).rejects.toThrow(/terminat/);
  pids.add((await pool.query(own)).rows[0].pid);
  expect(pids.size).toBe(4);
});

test("new requests wait behind earlier ones while a closed connection is being replaced", async () => {
  const { pool } = world.open({ max: 1 });
  const order: string[] = [];
  const use = async (name: string) => {
    const client = await pool.connect();
    order.push(name);
    client.release(true);
  };
  const held = await pool.connect();
  const early = [use("first"), use("second"), use("third")];
  held.release(true);
  await Promise.all([...early, use("late"), use("later")]);
  expect(order).toEqual(["first", "second", "third", "late", "later"]);
  expect(pool.waiting).toBe(0);
});

test("a request that gets no connection in time is refused with the time to retry", async () => {
  const { pool } = world.open({ max: 1, connectTimeout: 200 });
  const client = await pool.connect();
  const error: unknown = await pool.query("select 1").catch((thrown: unknown) => thrown);
  expect(toCodedError(error, new Map(), { signedIn: true })).toMatchObject({
    code: "UNAVAILABLE",
    status: 503,
    extensions: { retryAfterSeconds: 5 },
  });
  client.release();
  await pool.query("select 1");
});

test("queries of a party stay within its share of the connections", async () => {
  const { pool } = world.open({ max: 3 });
  const connections = new FairSemaphore({ capacity: 3, perParty: 1 });
  const ofAnn = withinShare(pool, connections, partyOf("ann", undefined));
  const many = Array.from({ length: 10 }, () => ofAnn.query(refusal).catch(() => {}));
  expect(connections.numbers).toEqual({ held: 1, waiting: 9 });
  await withinShare(pool, connections, partyOf("bob", undefined)).query("select 1");
  await Promise.all(many);
  expect(connections.numbers).toEqual({ held: 0, waiting: 0 });
});
