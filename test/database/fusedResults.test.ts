import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ANN, BOB, run, startFusedWorld, untilRow, type FusedWorld, type Opened } from "./fusedWorld.ts";

/** Results of every form, order of statements, prepared statements, conflicts. */
let world: FusedWorld;
let main: Opened;

beforeAll(async () => {
  world = await startFusedWorld();
  main = world.open();
});
afterAll(() => world.close());

const PREPARED =
  "select name, statement, generic_plans + custom_plans from pg_prepared_statements order by prepare_time";

test("rows come as arrays or objects, typed; none, many, wide; statements without rows", async () => {
  const text = "select 1 as a, true as b, null as c, '{1,2}'::int[] as d, '{\"x\":1}'::jsonb as e";
  const objects = () =>
    main.withPgClient(ANN, (client) => client.query({ text, name: "forms" })).then(({ rows }) => rows);
  expect(await objects()).toEqual([{ a: 1, b: true, c: null, d: [1, 2], e: { x: 1 } }]);
  expect((await run(main, ANN, text, [], "forms")).rows).toEqual([[1, true, null, [1, 2], { x: 1 }]]);
  expect(await objects()).toEqual([{ a: 1, b: true, c: null, d: [1, 2], e: { x: 1 } }]);
  expect(await run(main, ANN, "select 1 where false")).toMatchObject({ rows: [], rowCount: 0 });
  const many = await run(main, ANN, "select n, repeat('x', 100) from generate_series(1, 50000) n");
  expect([many.rows.length, many.rows.at(-1)?.[0], many.rowCount]).toEqual([50_000, 50_000, 50_000]);
  const [[wide]] = (await run(main, ANN, "select repeat('ü', 3000000)")).rows as [[string]];
  expect(wide.length).toBe(3_000_000);
  for (let use = 0; use < 2; use += 1) {
    const update = await run(main, ANN, "update app.notes set body = body where id = 1", [], "quiet");
    expect(update).toMatchObject({ rows: [], rowCount: 1 });
  }
  expect(await run(main, ANN, "")).toMatchObject({ rows: [] });
});

test("parameters: null, arrays, json, dates, bytes; an invalid one has no side effects", async () => {
  const text = "select $1::text, $2::int[], $3::json ->> 'k', $4::timestamptz, $5::bytea";
  const date = new Date("2026-01-02T03:04:05Z");
  const values = [null, [1, null], { k: "v" }, date, Buffer.from("hi")];
  expect((await run(main, ANN, text, values)).rows).toEqual([
    [null, [1, null], "v", date, Buffer.from("hi")],
  ]);
  const bad = {
    toPostgres: () => {
      throw new Error("cannot be sent");
    },
  };
  await expect(run(main, ANN, "select $1::text", [bad])).rejects.toThrow("cannot be sent");
  expect((await run(main, ANN, "select 1")).rows).toEqual([[1]]);
});

test("a value that its parser refuses rejects the statement only", async () => {
  const client = await main.pool.connect();
  client.setTypeParser(2950, () => {
    throw new Error("no uuid wanted");
  });
  client.release();
  const text = "select gen_random_uuid() from generate_series(1, 3)";
  await expect(run(main, ANN, text)).rejects.toThrow("no uuid wanted");
  expect((await run(main, ANN, "select 1")).rows).toEqual([[1]]);
});

test("notices are returned with their own result; changed server parameters and COPY have no effect", async () => {
  const { rows, notices } = await run(main, ANN, "select app.shout('hey')");
  expect(rows).toEqual([["HEY"]]);
  expect(notices).toMatchObject([
    { severity: "NOTICE", message: "heard hey", code: "00000" },
    { severity: "WARNING", message: "loud", code: "01000" },
  ]);
  expect((await run(main, { ...ANN, TimeZone: "Asia/Tokyo" }, "show timezone")).rows).toEqual([
    ["Asia/Tokyo"],
  ]);
  expect((await run(main, ANN, "select 1")).notices).toEqual([]);
  await expect(run(main, ANN, "copy app.notes from stdin")).rejects.toMatchObject({ code: "0A000" });
  expect((await run(main, BOB, "select 1")).rows).toEqual([[1]]);
});

test("statements of one client are executed in order, also after a transaction, and never mix", async () => {
  const order: unknown[] = [];
  await main.withPgClient(ANN, async (client) => {
    const one = (n: number) =>
      client
        .query<unknown[]>({ text: "select $1::int", values: [n], arrayMode: true })
        .then(({ rows }) => order.push(rows[0]?.[0]));
    const transaction = client.withTransaction(async (tx) => {
      await tx.query({ text: "select pg_sleep(0.05)" });
      order.push("transaction");
    });
    void one(1);
    void transaction;
    void one(2);
    await one(3);
  });
  expect(order).toEqual(["transaction", 1, 2, 3]);
});

test("many requests on few connections each get their own result under their own settings", async () => {
  const opened = world.open({ max: 4 });
  const requests = Array.from({ length: 200 }, (_, n) => `${n}`);
  const text = "select current_setting('plat.user_id'), $1::text";
  const ask = (n: string) =>
    run(opened, { ...ANN, "plat.user_id": n }, text, [n], Number(n) % 2 ? "who" : undefined);
  const answers = await Promise.all(requests.map(async (n) => (await ask(n)).rows[0]));
  expect(answers).toEqual(requests.map((n) => [n, n]));
  expect(opened.pool.totalCount).toBe(4);
});

test("a statement is prepared once per role; one that fails at first is not considered prepared", async () => {
  const opened = world.open();
  const divide = (settings: typeof ANN, by: number) =>
    run(opened, settings, "select 6 / $1::int", [by], "divide");
  await expect(divide(ANN, 0)).rejects.toMatchObject({ code: "22012" });
  await expect(run(opened, { ...ANN, role: "nobody_here" }, "select 1", [], "one")).rejects.toThrow(
    "nobody_here",
  );
  for (let use = 0; use < 3; use += 1) expect((await divide(ANN, 2)).rows).toEqual([[3]]);
  await expect(divide(ANN, 0)).rejects.toMatchObject({ code: "22012" });
  expect((await divide(BOB, 3)).rows).toEqual([[2]]);
  await divide({ ...ANN, role: "fused_other" }, 1);
  const listed = (await run(opened, null, PREPARED)).rows.filter(([, text]) => text === "select 6 / $1::int");
  // A division by zero fails during planning, so the statement was not used.
  expect(listed.map(([, , uses]) => uses)).toEqual(["4", "1"]);
});

test("the number of prepared statements is limited, and zero if they are disabled", async () => {
  const opened = world.open({}, { preparedStatements: 3 });
  for (let n = 0; n < 9; n += 1) await run(opened, ANN, `select ${n}`, [], `s${n}`);
  await run(opened, ANN, "select 9");
  const texts = (await run(opened, null, PREPARED)).rows.map(([, text]) => text);
  expect(texts).toEqual([expect.stringContaining("set_config"), "select 7", "select 8"]);
  const off = world.open({}, { preparedStatements: 0 });
  for (let use = 0; use < 2; use += 1)
    expect((await run(off, ANN, "select 5", [], "five")).rows).toEqual([[5]]);
  expect((await run(off, null, PREPARED)).rows).toEqual([]);
});

test("after a migration, or when the server has dropped them, statements are prepared again", async () => {
  const opened = world.open();
  const all = () => run(opened, ANN, "select * from app.notes", [], "all");
  expect((await all()).rows).toEqual([[1, "ann", "first"]]);
  await world.admin.query("alter table app.notes add column extra text default 'more'");
  expect((await all()).rows).toEqual([[1, "ann", "first", "more"]]);
  await world.admin.query("alter table app.notes drop column extra");
  expect((await all()).rows).toEqual([[1, "ann", "first"]]);
  await run(opened, null, "deallocate all");
  expect((await all()).rows).toEqual([[1, "ann", "first"]]);
});

test("one of two deadlocked statements is retried, and both succeed", async () => {
  const opened = world.open({ max: 2 });
  // Each has locked one row and waits for the other's; the lock after the first row ensures that both have
  // begun.
  const cross = `with mine as materialized (select app.take($1, $2)) select count(*) from mine`;
  await world.admin.query(`
    create function app.take(a int, b int) returns void language plpgsql as $$ begin
      perform from app.counters where id = a for update;
      perform pg_advisory_xact_lock_shared(8);
      perform from app.counters where id = b for update;
    end $$`);
  const holder = await world.admin.connect();
  await holder.query("select pg_advisory_lock(8)");
  const both = [run(opened, ANN, cross, [1, 2]), run(opened, ANN, cross, [2, 1])];
  await untilRow(
    world.admin,
    "select from pg_locks where locktype = 'advisory' and not granted having count(*) = 2",
  );
  await holder.query("select pg_advisory_unlock(8)");
  holder.release();
  expect((await Promise.all(both)).map(({ rowCount }) => rowCount)).toEqual([1, 1]);
});

test("40001 is retried five times and then returned; an explicit transaction is not retried", async () => {
  await world.admin.query(`
    create sequence app.tries; grant usage on sequence app.tries to fused_user;
    create function app.conflict(until int) returns bigint language plpgsql as $$ declare n bigint := nextval('app.tries'); begin
      if n < until then raise exception 'conflict' using errcode = '40001'; end if; return n; end $$`);
  const conflict = "select app.conflict($1)";
  expect((await run(main, ANN, conflict, [6])).rows).toEqual([["6"]]);
  await expect(run(main, ANN, conflict, [100])).rejects.toMatchObject({ code: "40001" });
  const explicit = main.withPgClient(ANN, (client) =>
    client.withTransaction((tx) => tx.query({ text: conflict, values: [100] })),
  );
  await expect(explicit).rejects.toMatchObject({ code: "40001" });
  const { rows } = await world.admin.query("select last_value from app.tries");
  expect(rows).toEqual([{ last_value: "13" }]);
});
