/** Timeouts of the database client: for connecting, for responses, and for closing. */
import { once } from "node:events";
import { connect, createServer, type AddressInfo } from "node:net";
import { afterAll, beforeAll, beforeEach, expect, test } from "@jest/globals";
import pino from "pino";
import { ListenConnection, openListener } from "../../src/database/listener.ts";
import { DatabaseClient, NoAnswerError } from "../../src/database/client.ts";
import { DatabaseConnectionError } from "../../src/database/databaseErrors.ts";
import { awaitStartedServer } from "../../src/database/startingServer.ts";
import { makeFusedAdaptor } from "../../src/database/fusedAdaptor.ts";
import { type LoadingClient, Preloaded } from "../../src/database/preloaded.ts";
import { retryDuringOutages } from "../../src/database/outages.ts";
import { makePool } from "../../src/database/pool.ts";
import { startGate, type Gate } from "../faults/gate.ts";
import { until } from "../harness/until.ts";

const log = pino({ level: "silent" });
let gate: Gate;
beforeAll(async () => {
  gate = await startGate();
});
afterAll(async () => {
  await gate[Symbol.asyncDispose]();
});
beforeEach(() => gate.open());

const client = (answerWithin: number) => {
  const made = new DatabaseClient({ connectionString: gate.database.workerUrl, answerWithin });
  made.on("error", () => {});
  return made;
};

/** The message that PostgreSQL sends before it closes a connection. */
function errorResponse(code: string, message: string): Buffer {
  const fields = Buffer.from(`SFATAL\0VFATAL\0C${code}\0M${message}\0\0`);
  const head = Buffer.from("E\0\0\0\0");
  head.writeInt32BE(fields.length + 4, 1);
  return Buffer.concat([head, fields]);
}

test("a server that dies while it accepts a connection only fails statements", async () => {
  const { port } = new URL(gate.database.workerUrl);
  const readyForQuery = Buffer.from("Z\0\0\0\x05I", "latin1");
  const server = createServer((socket) => {
    const upstream = connect(Number(port), "127.0.0.1");
    for (const one of [socket, upstream]) one.on("error", () => {});
    socket.pipe(upstream);
    upstream.on("data", (chunk: Buffer) => {
      if (!chunk.subarray(-readyForQuery.length).equals(readyForQuery)) return void socket.write(chunk);
      upstream.destroy();
      // In one packet, and therefore in one turn of the event loop.
      socket.end(Buffer.concat([chunk, errorResponse("57P01", "terminating connection")]));
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = new URL(gate.database.workerUrl);
  url.port = String((server.address() as AddressInfo).port);
  const pool = makePool({ connectionString: url.href, max: 2 });
  for (let n = 0; n < 3; n += 1) await expect(pool.query("select 1")).rejects.toThrow(/connection/i);
  await pool.end();
  server.close();
});

test("a start waits for a server that is recovering, and for no other one", async () => {
  const { port } = new URL(gate.database.ownerUrl);
  let refusals = 2;
  const server = createServer((socket) => {
    socket.on("error", () => {});
    if (refusals-- <= 0) {
      const upstream = connect(Number(port), "127.0.0.1");
      upstream.on("error", () => {});
      return void socket.pipe(upstream).pipe(socket);
    }
    const refusal = errorResponse("57P03", "the database system is not yet accepting connections");
    socket.once("data", () => socket.end(refusal));
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const url = new URL(gate.database.ownerUrl);
  url.port = String((server.address() as AddressInfo).port);
  await awaitStartedServer(url.href, log);
  expect(refusals).toBe(-1);
  refusals = 2;
  await expect(awaitStartedServer(url.href, log, 0)).rejects.toThrow("not yet accepting connections");
  server.close();
  await once(server, "close");
  await expect(awaitStartedServer(url.href, log)).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("reports a connection that is not accepted in time", async () => {
  gate.hush();
  const made = new DatabaseClient({ connectionString: gate.database.workerUrl, connectWithin: 50 });
  await expect(made.connect()).rejects.toThrow("did not take the connection in time");
  const pool = makePool({ connectionString: gate.database.workerUrl, connectTimeout: 50 });
  await expect(pool.query("select 1")).rejects.toMatchObject({ code: "08001" });
  await pool.end();
});

test("silence during a statement ends the connection; arriving rows and idle times do not", async () => {
  const made = client(400);
  await made.connect();
  // Each row arrives within the limit, the whole result does not.
  const slow = "select pg_sleep(0.1), repeat('x', 10000) from generate_series(1, 10)";
  expect((await made.query(slow)).rowCount).toBe(10);
  const server = client(10_000);
  await server.connect();
  await server.query("select pg_sleep(0.6)");
  expect((await made.query("select 1 as one")).rows).toEqual([{ one: 1 }]);
  gate.hush();
  await expect(made.query("select 1")).rejects.toBeInstanceOf(NoAnswerError);
  // The server does not respond to the end either.
  await Promise.all([made.end(), server.end()]);
});

test("a pool closes a silent connection, reports that it was lost, and opens another one", async () => {
  const { workerUrl: connectionString } = gate.database;
  const pool = makePool({ connectionString, max: 1, answerWithin: 300 });
  await pool.query("select 1");
  gate.hush();
  await expect(pool.query("select 1")).rejects.toBeInstanceOf(NoAnswerError);
  gate.open();
  expect((await pool.query("select 2 as two")).rows).toEqual([{ two: 2 }]);
  await pool.end();
});

test("a broken connection is reopened, and keeps running work under its former id", async () => {
  let looks = 0;
  const connection = await ListenConnection.open({
    connectionString: gate.database.workerUrl,
    applicationName: "plat-test-line",
    log,
    answerWithin: 500,
  });
  const line = await connection.listen({});
  // Another component of the process, on the same connection.
  const received: (string | undefined)[] = [];
  const other = await connection.listen({
    listen: { channel: "plat_test", called: (payload) => received.push(payload) },
  });
  expect(other.current()!.id).not.toBe(line.current()!.id);
  line.keep(() => (looks += 1), 3_600_000);
  const owner = new DatabaseClient({ connectionString: gate.database.ownerUrl });
  await owner.connect();
  const living = async () =>
    (await owner.query("select id from app_private.living_connections() id")).rows.map(
      (row: { id: number }) => row.id,
    );
  try {
    const first = line.current()!;
    const letGo = first.hold();
    for (const fault of ["shut", "hush"] as const) {
      const before = line.current()!.id;
      gate[fault]();
      await until(() => line.current() === undefined);
      gate.open();
      const now = await until(() => line.current());
      expect(now!.id).not.toBe(before);
      // Immediately: it checks after each reconnect.
      await until(() => looks >= 2);
      const both = [now!.id, (await until(() => other.current()))!.id];
      expect(await living()).toEqual(expect.arrayContaining([first.id, ...both]));
      await owner.query("select pg_notify('plat_test', $1), pg_notify('plat_unheard', '')", [fault]);
      await until(() => received.at(-1) === fault);
    }
    expect(received).toEqual(["shut", "hush"]);
    const { id: otherId } = other.current()!;
    await other.end();
    await until(async () => !(await living()).includes(otherId));
    await owner.query("notify plat_test");
    letGo();
    await until(async () => !(await living()).includes(first.id));
    const { id } = line.current()!;
    line.renew();
    await until(async () => line.current()!.id !== id && !(await living()).includes(id));
    expect(received).toHaveLength(2);
  } finally {
    await line.end();
    await connection.end();
    await owner.end();
  }
});

test("work that ends during a reconnect is released", async () => {
  let ends = () => {};
  const { workerUrl: connectionString } = gate.database;
  const own = { connectionString, applicationName: "plat-test-line", log };
  const line = await openListener(undefined, own, { connected: () => Promise.resolve(ends()) });
  const owner = new DatabaseClient({ connectionString: gate.database.ownerUrl });
  await owner.connect();
  try {
    const { id, hold } = line.current()!;
    ends = hold();
    gate.shut();
    await until(() => line.current() === undefined);
    gate.open();
    await until(() => line.current());
    const lives = async () =>
      (await owner.query("select from app_private.worker_connections where id = $1", [id])).rowCount;
    expect(await until(lives, (rows) => rows === 0)).toBe(0);
  } finally {
    await line.end();
    await owner.end();
  }
});

test("marked work is retried while the database is unavailable, and nothing else is", async () => {
  let attempts = 0;
  const comesBack = () => {
    attempts += 1;
    return attempts < 3
      ? Promise.reject(new DatabaseConnectionError("08006", new Error("cut")))
      : Promise.resolve("noted");
  };
  expect(await retryDuringOutages(comesBack)).toBe("noted");
  const made = client(10_000);
  await made.connect();
  await expect(retryDuringOutages(() => made.query("select 1 / 0"))).rejects.toMatchObject({ code: "22012" });
  await made.end();
});

test("without prepared statements, statements have no names, and the server stores none", async () => {
  const kept = async (preparedStatements: boolean) => {
    const pool = makePool({ connectionString: gate.database.authenticatorUrl, max: 1, preparedStatements });
    await pool.query({ name: "of_pool", text: "select $1::int as one", values: [1] });
    const { rows } = await pool.query("select name from pg_prepared_statements");
    await pool.end();
    return rows;
  };
  expect(await kept(true)).toEqual([{ name: "of_pool" }]);
  expect(await kept(false)).toEqual([]);
});

test("a statement whose values are loaded first may take as long as the loading permits", async () => {
  const pool = makePool({ connectionString: gate.database.authenticatorUrl, max: 1, answerWithin: 300 });
  const withPgClient = makeFusedAdaptor().createWithPgClient({ pool });
  class Permitting extends Preloaded {
    readonly #timeout: string;
    constructor(timeout: string) {
      super();
      this.#timeout = timeout;
    }
    async load(loading: LoadingClient): Promise<void> {
      const text = "select set_config('statement_timeout', $1, true)";
      await loading.query({ text, values: [this.#timeout] });
    }
    toJSON() {
      return null;
    }
  }
  const sleep = (values: unknown[]) =>
    withPgClient(null, (one) =>
      one.query<{ is_null: boolean }>({
        text: "select $1::json is null as is_null from pg_sleep(0.8)",
        values: values as never,
      }),
    );
  expect((await sleep([new Permitting("20s")])).rowCount).toBe(1);
  await expect(sleep([new Permitting("400ms")])).rejects.toMatchObject({ code: "57014" });
  await expect(sleep([null])).rejects.toThrow(DatabaseConnectionError);
  await pool.end();
});
