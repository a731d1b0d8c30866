import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { ANN, run, startFusedWorld, untilRow, type FusedWorld, type Opened } from "./fusedWorld.ts";

/** The outcome of a statement and of its connection after interruptions. */
let world: FusedWorld;

beforeAll(async () => {
  world = await startFusedWorld();
});
afterAll(() => world.close());

const OWN_NOTES = "select id, body from app.notes order by id";
const WAIT = "select pg_advisory_xact_lock(7), 'waited'";

/** Starts a statement that waits for a lock of the test, and passes the process id of its backend. */
async function withWaiting(opened: Opened, act: (pid: number, waiting: Promise<unknown>) => Promise<void>) {
  const holder = await world.admin.connect();
  try {
    await holder.query("select pg_advisory_lock(7)");
    const waiting = run(opened, ANN, WAIT, [], "wait");
    waiting.catch(() => {});
    const { pid } = await untilRow(
      world.admin,
      "select pid from pg_locks where locktype = 'advisory' and not granted",
    );
    await act(pid as number, waiting);
  } finally {
    await holder.query("select pg_advisory_unlock_all()");
    holder.release();
  }
}

test("a cancelled statement rejects with 57014 and its connection remains usable", async () => {
  const opened = world.open();
  await withWaiting(opened, async (pid, waiting) => {
    await world.admin.query("select pg_cancel_backend($1)", [pid]);
    await expect(waiting).rejects.toMatchObject({ code: "57014" });
    const { rows } = await run(opened, ANN, "select pg_backend_pid()");
    expect(rows).toEqual([[pid]]);
  });
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("statement_timeout of the pool, and of the settings, cancels the statement and its connection remains usable", async () => {
  const opened = world.open({ statementTimeout: 50 });
  const [[pid]] = (await run(opened, ANN, "select pg_backend_pid()")).rows as [[number]];
  await expect(run(opened, ANN, "select pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
  const patient = { ...ANN, statement_timeout: "60000" };
  expect((await run(opened, patient, "select pg_sleep(0.1), 'slept'")).rows).toEqual([["", "slept"]]);
  const hasty = world.open();
  const settings = { ...ANN, statement_timeout: "50" };
  await expect(run(hasty, settings, "select pg_sleep(60)")).rejects.toMatchObject({ code: "57014" });
  expect((await run(opened, ANN, "select pg_backend_pid()")).rows).toEqual([[pid]]);
});

test("a terminated backend rejects with 57P01, leaves the pool, and the next statement gets a new one", async () => {
  const opened = world.open();
  await withWaiting(opened, async (pid, waiting) => {
    await world.admin.query("select pg_terminate_backend($1)", [pid]);
    await expect(waiting).rejects.toMatchObject({ code: "57P01" });
    const { rows } = await run(opened, ANN, "select pg_backend_pid()");
    expect(rows).not.toEqual([[pid]]);
  });
  expect((await run(opened, ANN, OWN_NOTES, [], "wait-not")).rows).toEqual([[1, "first"]]);
  expect(opened.pool.totalCount).toBe(1);
});

test("a lost connection is discarded even if the callback hides the error", async () => {
  const opened = world.open();
  await opened.withPgClient(null, async (client) => {
    const killed = client.query({ text: "select pg_terminate_backend(pg_backend_pid())" });
    await expect(killed).rejects.toMatchObject({ code: "57P01" });
  });
  expect(opened.pool.totalCount).toBe(0);
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("a wrong number of parameters is an error of the statement only", async () => {
  const opened = world.open();
  const [[pid]] = (await run(opened, ANN, "select pg_backend_pid()")).rows as [[number]];
  await expect(run(opened, ANN, "select $1::int", [1, 2])).rejects.toMatchObject({ code: "08P01" });
  expect((await run(opened, ANN, "select pg_backend_pid()")).rows).toEqual([[pid]]);
});

test("an interrupted connection rejects with 08006, in a transaction too, and the next statement gets a new connection", async () => {
  const opened = world.open();
  await withWaiting(opened, async (_, waiting) => {
    world.proxy.cut();
    await expect(waiting).rejects.toMatchObject({ code: "08006" });
  });
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
  const transaction = opened.withPgClient(ANN, (client) =>
    client.withTransaction(async (tx) => {
      world.proxy.cut();
      await tx.query({ text: "select 1" });
    }),
  );
  await expect(transaction).rejects.toMatchObject({ code: "08006" });
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("a connection lost while it is idle affects no request", async () => {
  const opened = world.open();
  await run(opened, ANN, OWN_NOTES);
  const removed = new Promise((resolve) => opened.pool.once("remove", resolve));
  world.proxy.cut();
  await removed;
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("a connection released inside a transaction is discarded", async () => {
  const opened = world.open();
  await run(opened, null, "begin");
  expect(opened.pool.totalCount).toBe(0);
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});

test("during a restart of the server, statements are refused with a code, and succeed afterwards", async () => {
  const opened = world.open();
  await run(opened, ANN, OWN_NOTES);
  const removed = new Promise((resolve) => opened.pool.once("remove", resolve));
  await world.cluster.restart(async () => {
    await removed;
    await expect(run(opened, ANN, OWN_NOTES)).rejects.toMatchObject({ code: "08001" });
  });
  expect((await run(opened, ANN, OWN_NOTES)).rows).toEqual([[1, "first"]]);
});
