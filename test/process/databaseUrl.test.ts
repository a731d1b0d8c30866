import { afterEach, expect, test } from "@jest/globals";
import { Client } from "pg";
import { migrate } from "../../src/database/migrate.ts";
import { authenticatorUrl } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { runToExit, startService, temporaryFolder } from "../harness/service.ts";

let database: TestDatabase;
/** A database for the test: empty, or migrated. */
async function use(from: "empty" | "template"): Promise<void> {
  database = await createTestDatabase(from);
}
afterEach(() => database.drop());

async function sql(text: string, connectionString = database.ownerUrl): Promise<Record<string, unknown>[]> {
  const client = new Client({ connectionString });
  await client.connect();
  try {
    return (await client.query<Record<string, unknown>>(text)).rows;
  } finally {
    await client.end();
  }
}

test("--migrate-only migrates and exits; API and worker can run separately; /readyz fails while the database is unavailable", async () => {
  await use("empty");
  await using folder = await temporaryFolder();
  const env = { DATABASE_URL: database.ownerUrl, DATA_DIR: folder.path };
  for (const mode of ["--api-only", "--worker-only"]) {
    const early = await runToExit({ env, args: [mode] });
    expect(early.code).toBe(1);
    expect(early.stderr).toMatch(
      /^The database lacks \d+ migration\(s\), from 000001\S* on: run `npm start -- --migrate-only` first\.\n$/,
    );
  }
  expect(await runToExit({ env, args: ["--migrate-only"] })).toMatchObject({ code: 0, stderr: "" });
  await using api = await startService({ env, args: ["--api-only"] });
  await using worker = await startService({ env, args: ["--worker-only"] });
  expect(await api.get("/readyz")).toEqual({
    status: 200,
    body: { status: "ready", checks: { migrated: true, writes: true, database: true } },
  });
  expect(await worker.stop()).toMatchObject({ code: 0 });
  const name = new URL(database.ownerUrl).pathname.slice(1);
  const root = new URL(database.ownerUrl);
  root.pathname = "/postgres";
  await sql(`alter database ${name} with allow_connections false`, root.href);
  await sql(`select pg_terminate_backend(pid) from pg_stat_activity where datname = '${name}'`, root.href);
  expect(await api.get("/readyz")).toMatchObject({
    status: 503,
    body: { status: "unavailable", checks: { migrated: true, writes: false, database: false } },
  });
  expect(await api.get("/healthz")).toMatchObject({ status: 200 });
  await sql(`alter database ${name} with allow_connections true`, root.href);
  expect(await api.get("/readyz")).toMatchObject({
    body: { checks: { migrated: true, writes: true, database: true } },
  });
  expect(await api.stop()).toMatchObject({ code: 0 });
});

test("several services started concurrently on an empty database all start", async () => {
  await use("empty");
  await using folder = await temporaryFolder();
  await using other = await temporaryFolder();
  const start = (DATA_DIR: string) => startService({ env: { DATABASE_URL: database.ownerUrl, DATA_DIR } });
  const services = await Promise.all([start(folder.path), start(other.path)]);
  for (const service of services) expect(await service.get("/readyz")).toMatchObject({ status: 200 });
  for (const service of services) expect(await service.stop()).toMatchObject({ code: 0 });
});

test("migrating again changes nothing, also concurrently, and does not rotate passwords", async () => {
  await use("template");
  await Promise.all(Array.from({ length: 4 }, () => migrate(database.ownerUrl)));
  const passwords = () =>
    sql(
      "select rolname, rolpassword from pg_authid where rolname in ('plat_authenticator', 'plat_worker') order by 1",
    );
  const before = await passwords();
  await migrate(database.ownerUrl);
  expect(await passwords()).toEqual(before);
  expect(await sql("select current_user::text as me", database.workerUrl)).toEqual([{ me: "plat_worker" }]);
  expect(await sql("select current_user::text as me", authenticatorUrl(database.ownerUrl))).toEqual([
    { me: "plat_authenticator" },
  ]);
});

test("background work does not start as a superuser", async () => {
  await use("template");
  await using folder = await temporaryFolder();
  const { ownerUrl } = database;
  const exit = await runToExit({
    env: { DATABASE_URL: ownerUrl, WORKER_URL: ownerUrl, DATA_DIR: folder.path },
  });
  expect(exit).toMatchObject({
    code: 1,
    stderr: expect.stringMatching(/^WORKER_URL logs in as \w+, which is a superuser: /),
  });
});

test("an owner without superuser rights can migrate", async () => {
  await use("empty");
  const name = new URL(database.ownerUrl).pathname.slice(1);
  const role = `${name}_owner`;
  await sql(`create role ${role} login createrole password 'a plain word'`);
  await sql(
    `grant plat_owner, plat_user, plat_anonymous, plat_worker, plat_masker, plat_authenticator to ${role} with admin option`,
  );
  await sql(`alter database ${name} owner to ${role}`);
  try {
    const owner = new URL(database.ownerUrl);
    owner.username = role;
    owner.password = "a plain word";
    // The cluster's other databases belong to another owner, who keeps the API's login.
    await migrate(owner.href, { authenticatorUrl: database.authenticatorUrl });
    expect(
      await sql("select count(*)::int > 0 as done from graphile_migrate.migrations", owner.href),
    ).toEqual([{ done: true }]);
  } finally {
    await database.drop();
    await sql(`drop role ${role}`, database.ownerUrl.replace(name, "postgres"));
  }
});

test("a second installation on the cluster needs logins of its own, and does not change those of the first", async () => {
  await use("template");
  const second = await createTestDatabase("empty");
  await using folder = await temporaryFolder();
  await sql("create role second_owner superuser login password 'a plain word'");
  const url = new URL(second.ownerUrl);
  url.username = "second_owner";
  url.password = "a plain word";
  const env = { DATABASE_URL: url.href, DATA_DIR: folder.path };
  try {
    await migrate(database.ownerUrl);
    expect(await runToExit({ env })).toMatchObject({
      code: 1,
      stderr: expect.stringMatching(
        /^plat_authenticator is how the installation of the database \S+ logs in to this cluster: set ROLE_PREFIX, /,
      ),
    });
    await using service = await startService({ env: { ...env, ROLE_PREFIX: "second_" } });
    expect(await service.get("/readyz")).toMatchObject({ status: 200 });
    expect(await service.ask("{ publicProjects { id } }")).toMatchObject({
      body: { data: { publicProjects: [] } },
    });
    const users = await sql(
      "select distinct usename::text as name from pg_stat_activity where usename like 'second%' order by 1",
    );
    expect(users.map(({ name }) => name)).toEqual(["second_authenticator", "second_owner", "second_worker"]);
    expect(await service.stop()).toMatchObject({ code: 0 });
    for (const [role, login] of Object.entries({
      plat_worker: database.workerUrl,
      plat_authenticator: authenticatorUrl(database.ownerUrl),
    }))
      expect(await sql("select current_user::text as me", login)).toEqual([{ me: role }]);
  } finally {
    await second.drop();
    await sql("drop role if exists second_authenticator, second_worker, second_owner");
  }
});

test("refuses a database that is newer than the code, without changing it", async () => {
  await use("template");
  await sql("insert into graphile_migrate.migrations (hash, filename) values ('sha1:00', '999999.sql')");
  await expect(migrate(database.ownerUrl)).rejects.toThrow(
    "The database is newer than this version of Plat: it holds migration 999999.sql, which is unknown here.",
  );
});

test("a database whose migrations were edited afterwards is refused", async () => {
  await use("template");
  const last = "(select hash from graphile_migrate.migrations order by filename desc limit 1)";
  await sql(`update graphile_migrate.migrations set hash = 'sha1:00' where hash = ${last}`);
  await expect(migrate(database.ownerUrl)).rejects.toThrow(
    /a committed migration must not be edited, add a new one\.$/,
  );
});

test("an unreachable server is reported with one sentence, not a stack trace", async () => {
  await use("empty");
  await using folder = await temporaryFolder();
  const exit = await runToExit({
    env: { DATABASE_URL: "postgres://u:geheim@127.0.0.1:1/plat", DATA_DIR: folder.path },
  });
  expect(exit.code).toBe(1);
  expect(exit.stderr).toMatch(/ECONNREFUSED 127\.0\.0\.1:1/);
  expect(exit.stderr + exit.stdout).not.toMatch(/geheim|\n {4}at /);
});
