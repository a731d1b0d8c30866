import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ANN, BOB, run, startFusedWorld, type FusedWorld, type Opened } from "./fusedWorld.ts";
import { onStatement } from "../../src/database/statementEvents.ts";

let world: FusedWorld;
let main: Opened;

beforeAll(async () => {
  world = await startFusedWorld();
  main = world.open();
});
afterAll(() => world.close());

const OWN_NOTES = "select id, body from app.notes order by id";

test("settings and statement take one round trip, for a new and for a prepared statement", async () => {
  const opened = world.open();
  await run(opened, null, "select 1");
  for (let use = 0; use < 3; use += 1) {
    world.proxy.takeRoundTrips();
    const { rows } = await run(opened, ANN, OWN_NOTES, [], "own-notes");
    expect(rows).toEqual([[1, "first"]]);
    expect(world.proxy.takeRoundTrips()).toBe(1);
  }
});

test("each request sees its own rows, and settings are reset afterwards", async () => {
  expect((await run(main, ANN, OWN_NOTES, [], "n")).rows).toEqual([[1, "first"]]);
  expect((await run(main, BOB, OWN_NOTES, [], "n")).rows).toEqual([[2, "second"]]);
  const left = await run(main, null, "select current_user, current_setting('plat.user_id', true)");
  expect(left.rows).toEqual([["fused_login", ""]]);
  await expect(run(main, null, OWN_NOTES)).rejects.toMatchObject({ code: "42501" });
});

test("settings without a value are omitted, the others are passed unchanged", async () => {
  const odd = { ...ANN, "plat.odd": `it's "odd" \\ \n ü`, "plat.none": undefined };
  const text = "select current_setting('plat.odd'), current_setting('plat.none', true), current_user";
  expect((await run(main, odd, text)).rows).toEqual([[odd["plat.odd"], null, "fused_user"]]);
});

test.each([
  ["a role that does not exist", { ...ANN, role: "nobody_here" }, "22023"],
  ["a role without membership", { ...ANN, role: "postgres" }, "42501"],
  ["a value that the setting cannot have", { ...ANN, statement_timeout: "soon" }, "22023"],
  ["a NUL byte", { ...ANN, "plat.user_id": "a\0b" }, "22021"],
  ["an invalid name of a setting", { ...ANN, "no such name": "x" }, "42704"],
])("%s: the statement does not run and the connection stays usable", async (_, settings, code) => {
  const change = "update app.notes set body = 'changed' where id = 1";
  await expect(run(main, settings, change)).rejects.toMatchObject({ code });
  await expect(run(main, settings, change, [], "change")).rejects.toMatchObject({ code });
  expect((await world.admin.query("select body from app.notes where id = 1")).rows).toEqual([
    { body: "first" },
  ]);
  expect((await run(main, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
  expect(main.pool.totalCount).toBe(1);
});

test("an error at commit rejects the statement, with all its fields, and nothing is stored", async () => {
  const text = "update app.counters set n = 20 where id = 1 returning id";
  await expect(run(main, ANN, text)).rejects.toMatchObject({
    code: "23505",
    table: "counters",
    schema: "app",
    constraint: "counters_n_key",
    detail: "Key (n)=(20) already exists.",
  });
  expect((await world.admin.query("select n from app.counters where id = 1")).rows).toEqual([{ n: 10 }]);
  expect((await run(main, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("a mutation is committed when its response arrives", async () => {
  const { rows, rowCount } = await run(
    main,
    ANN,
    "insert into app.notes values (60, 'ann', 'x') returning id",
  );
  expect([rows, rowCount]).toEqual([[[60]], 1]);
  expect((await world.admin.query("delete from app.notes where id = 60")).rowCount).toBe(1);
});

test("an explicit transaction keeps its settings and is atomic, and a nested one is a savepoint", async () => {
  const insert = (id: number) => ({
    text: `insert into app.notes values ($1, 'ann', $2)`,
    values: [id, `t${id}`],
  });
  await main.withPgClient(ANN, (client) =>
    client.withTransaction(async (tx) => {
      await tx.query(insert(70));
      await expect(
        tx.withTransaction(async (inner) => {
          await inner.query(insert(71));
          throw new Error("no");
        }),
      ).rejects.toThrow("no");
      expect((await tx.query<{ who: string }>({ text: "select current_user as who" })).rows).toEqual([
        { who: "fused_user" },
      ]);
    }),
  );
  const failing = main.withPgClient(ANN, (client) =>
    client.withTransaction(async (tx) => {
      await tx.query(insert(72));
      await tx.query(insert(70));
    }),
  );
  await expect(failing).rejects.toMatchObject({ code: "23505" });
  const { rows } = await world.admin.query("delete from app.notes where id between 70 and 79 returning id");
  expect(rows).toEqual([{ id: 70 }]);
});

test("an explicit transaction rejects after a failed commit, a swallowed error and an invalid setting", async () => {
  const transaction = (settings: Record<string, string>, text: string, swallow = false) =>
    main.withPgClient(settings, (client) =>
      client.withTransaction(async (tx) => {
        const query = tx.query({ text });
        await (swallow ? query.catch(() => {}) : query);
      }),
    );
  const duplicate = "insert into app.notes values (80, 'ann', 'first')";
  await expect(transaction(ANN, duplicate)).rejects.toMatchObject({ code: "23505" });
  await expect(transaction(ANN, "select 1 / 0", true)).rejects.toMatchObject({ code: "25P02" });
  await expect(transaction({ ...ANN, role: "nobody_here" }, "select 1")).rejects.toMatchObject({
    code: "22023",
  });
  expect((await run(main, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
  expect(main.pool.totalCount).toBe(1);
});

test("transaction_read_only among the settings refuses a write, for that statement only", async () => {
  const readOnly = { ...ANN, transaction_read_only: "on" };
  const write = "insert into app.notes values (90, 'ann', 'y')";
  expect((await run(main, readOnly, OWN_NOTES)).rows).toEqual([[1, "first"]]);
  await expect(run(main, readOnly, write)).rejects.toMatchObject({ code: "25006" });
  expect((await run(main, ANN, "update app.notes set body = body where id = 1")).rowCount).toBe(1);
});

test("statements are reported to observers, settings are not", async () => {
  const seen: string[] = [];
  const stop = onStatement((text) => seen.push(text));
  await run(main, ANN, OWN_NOTES);
  await main.withPgClient(ANN, (client) => client.withTransaction((tx) => tx.query({ text: "select 2" })));
  stop();
  await run(main, ANN, "select 3");
  expect(seen).toEqual([OWN_NOTES, "select 2"]);
});

test("the raw connection is inaccessible without the settings, and so is a client after its callback", async () => {
  const kept = await main.withPgClient(ANN, async (client) => {
    expect(() => client.rawClient).toThrow("no role or claims");
    return client;
  });
  await expect(kept.query({ text: "select 1" })).rejects.toThrow("given back");
});
