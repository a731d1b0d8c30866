/** PgBouncer between the service and its database: apt-get install pgbouncer. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import type { ChildProcess } from "node:child_process";
import { chmod, writeFile } from "node:fs/promises";
import { createServer, type AddressInfo } from "node:net";
import { join } from "node:path";
import { onConnection } from "../../src/database/onConnection.ts";
import { requireOwnSessions } from "../../src/database/ownSessions.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { startProgram } from "../harness/child.ts";
import { runToExit, temporaryFolder } from "../harness/service.ts";
import { until } from "../harness/until.ts";

let database: TestDatabase;
let folder: Awaited<ReturnType<typeof temporaryFolder>>;
let pooler: ChildProcess;
/** By way of the pooler, which shares sessions by transaction or by session. */
let by: (mode: "transaction" | "session") => string;

beforeAll(async () => {
  database = await createTestDatabase("empty");
  folder = await temporaryFolder();
  const server = new URL(database.ownerUrl);
  const at = [`host=${server.hostname}`, `port=${server.port}`, `dbname=${server.pathname.slice(1)}`].join(
    " ",
  );
  const login = `user=${server.username} password=${decodeURIComponent(server.password)}`;
  const port = await freePort();
  const settings = join(folder.path, "pgbouncer.ini");
  const line = (mode: string) => `${mode} = ${at} ${login} pool_mode=${mode}`;
  await writeFile(
    settings,
    `[databases]\n${line("transaction")}\n${line("session")}\n[pgbouncer]\nlisten_addr = 127.0.0.1\n` +
      `listen_port = ${port}\nunix_socket_dir =\nauth_type = any\nignore_startup_parameters = extra_float_digits,options\n`,
  );
  await chmod(folder.path, 0o755);
  await chmod(settings, 0o644);
  // It refuses to run as root.
  const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {};
  pooler = startProgram("pgbouncer", [settings], { stdio: "ignore", ...nobody });
  by = (mode) => `postgres://plat:any@127.0.0.1:${port}/${mode}`;
  await until(
    () => onConnection(by("session"), async () => true).catch(() => false),
    (isThere) => isThere,
  );
}, 60_000);
afterAll(async () => {
  pooler?.kill();
  await database?.drop();
  await folder?.[Symbol.asyncDispose]();
});

async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((listening) => server.listen(0, "127.0.0.1", listening));
  const { port } = server.address() as AddressInfo;
  await new Promise((closed) => server.close(closed));
  return port;
}

test("a pooler that shares sessions by transaction is told from one that does not, and from the server", async () => {
  await expect(requireOwnSessions("WORKER_URL", by("transaction"))).rejects.toThrow(
    /^WORKER_URL leads to a pooler that shares sessions, such as PgBouncer in transaction mode\./,
  );
  await requireOwnSessions("WORKER_URL", by("session"));
  await requireOwnSessions("WORKER_URL", database.ownerUrl);
});

test("migrating through it is refused with a sentence, and leaves no lock behind", async () => {
  await using data = await temporaryFolder();
  const env = { DATABASE_URL: by("transaction"), DATA_DIR: data.path };
  expect(await runToExit({ env, args: ["--migrate-only"] })).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(
      /^DATABASE_URL leads to a pooler that shares sessions.* name the server itself\.\n$/,
    ),
  });
  const locks = await onConnection(database.ownerUrl, (client) =>
    client.query("select from pg_locks where locktype = 'advisory'"),
  );
  expect(locks.rowCount).toBe(0);
}, 60_000);
