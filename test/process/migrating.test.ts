import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { writeFile } from "node:fs/promises";
import { join, resolve } from "node:path";
import { readMigrations } from "../../src/database/committed.ts";
import { migrate } from "../../src/database/migrate.ts";
import { migratedCheck } from "../../src/database/migrated.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { killChild, startChild } from "../harness/child.ts";
import { until } from "../harness/until.ts";
import { Client } from "pg";
import { migrationFolder, runSql, type MigrationFolder } from "../harness/migrationFolder.ts";

const answer = (text: string) =>
  `create function app_public.answer() returns text language sql stable as $$ select '${text}' $$;`;
const names = "create view app_public.names as select name from app_public.units;";

let database: TestDatabase;
let folder: MigrationFolder;
beforeEach(async () => {
  database = await createTestDatabase("empty");
  folder = await migrationFolder("create table app_public.units (id int primary key, name text);", {
    "answer.sql": answer("first"),
    "names.sql": names,
  });
  await bring();
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
  await database.drop();
});

const bring = (ownerUrl = database.ownerUrl) =>
  migrate(ownerUrl, { folder: folder.path, authenticatorUrl: database.authenticatorUrl });
const sql = <T extends Record<string, unknown>>(text: string) => runSql<T>(database.ownerUrl, text);
const answered = async () =>
  (await sql<{ answer: string }>("select app_public.answer() as answer"))[0]!.answer;
/** Reference databases of this database. */
const references = async () =>
  (
    await sql<{ datname: string }>(
      `select datname from pg_database
       where datname like 'plat\\_reference\\_' || (select oid from pg_database where datname = current_database()) || '\\_%'`,
    )
  ).map(({ datname }) => datname);

test("of several concurrent processes, one applies a pending migration", async () => {
  await folder.objects({ "answer.sql": answer("second") });
  expect((await Promise.all([bring(), bring(), bring()])).filter(Boolean)).toHaveLength(1);
  expect(await answered()).toBe("second");
  expect(await references()).toEqual([]);
});

test("a process killed in the middle leaves the database unchanged; the next one migrates and cleans up", async () => {
  await folder.objects({ "answer.sql": `${answer("second")} select pg_sleep(600);` });
  const source = resolve(import.meta.dirname, "../../src/database/migrate.ts");
  const child = startChild(
    [
      "--input-type=module",
      "--eval",
      `const { migrate } = await import(${JSON.stringify(source)});
       await migrate(${JSON.stringify(database.ownerUrl)}, { folder: ${JSON.stringify(folder.path)} });`,
    ],
    { stdio: "inherit" },
  );
  const asleep = () =>
    sql(
      "select 1 from pg_stat_activity where query like '%pg_sleep(600)%' and pid <> pg_backend_pid() and datname like 'plat_reference%'",
    );
  await until(asleep, (sessions) => sessions.length > 0);
  await killChild(child);
  expect(await references()).toHaveLength(1);
  expect(await answered()).toBe("first");

  await folder.objects({ "answer.sql": answer("third") });
  await bring();
  expect(await answered()).toBe("third");
  expect(await references()).toEqual([]);
});

test("reports an error in a file before changing an existing database; a new one starts once it is fixed", async () => {
  await folder.commit("more", "create table app_public.more (id int primary key);");
  await folder.objects({ "answer.sql": "create policy p on app_public.more using (wrong);" });
  const refused = /objects\/answer\.sql:1:43: column "wrong" does not exist/;
  await expect(bring()).rejects.toThrow(refused);
  expect(await answered()).toBe("first");
  expect(await sql("select to_regclass('app_public.more')::text as more")).toEqual([{ more: null }]);
  expect(await references()).toEqual([]);

  const fresh = await createTestDatabase("empty");
  try {
    await expect(bring(fresh.ownerUrl)).rejects.toThrow(refused);
    await folder.objects({ "answer.sql": answer("mended") });
    await bring(fresh.ownerUrl);
    expect(await runSql(fresh.ownerUrl, "select app_public.answer()")).toEqual([{ answer: "mended" }]);
  } finally {
    await fresh.drop();
  }
});

test("a migration may drop dependent objects, which are created again after it; without cascade it is refused", async () => {
  await folder.objects({
    "names.sql": "create view app_public.names as select 'none' as name from app_public.units;",
  });
  await folder.commit("unnamed", "alter table app_public.units drop column name cascade;");
  await bring();
  expect(await sql("select * from app_public.names")).toEqual([]);
  await folder.commit("no-units", "drop table app_public.units;");
  await folder.objects({ "names.sql": undefined });
  await expect(bring()).rejects.toThrow(
    /A migration drops what is in its way itself, with "cascade" or by name/,
  );
});

test("an owner without the right to create databases uses a separate cluster for the reference", async () => {
  const name = new URL(database.ownerUrl).pathname.slice(1);
  const role = `${name}_owner`;
  await sql(`create role ${role} login createrole password 'a plain word'`);
  await sql(
    `grant plat_owner, plat_user, plat_anonymous, plat_worker, plat_masker, plat_authenticator to ${role} with admin option`,
  );
  const own = await createTestDatabase("empty");
  const ownName = new URL(own.ownerUrl).pathname.slice(1);
  await sql(`alter database ${ownName} owner to ${role}`);
  const owner = new URL(own.ownerUrl);
  owner.username = role;
  owner.password = "a plain word";
  try {
    await bring(owner.href);
    await folder.objects({ "answer.sql": answer("second") });
    await bring(owner.href);
    expect(await runSql(owner.href, "select app_public.answer()")).toEqual([{ answer: "second" }]);
  } finally {
    await own.drop();
    await sql(`drop role ${role}`);
  }
});

test("a process is ready with its own objects or later ones, also after a restart during a rolling deployment", async () => {
  const check = async () => {
    const found = await migratedCheck(database.ownerUrl, () => undefined, folder.path);
    try {
      return await found.missing();
    } finally {
      await found.end();
    }
  };
  expect(await check()).toEqual([]);
  await folder.objects({ "answer.sql": answer("second") });
  expect(await check()).toEqual(["objects"]);
  await bring();
  expect(await check()).toEqual([]);
  await folder.objects({ "answer.sql": answer("first") });
  expect(await check()).toEqual([]);
  // No process applied these objects, but the database has more migrations than this version.
  await sql("insert into graphile_migrate.migrations (hash, filename) values ('sha1:00', '000002.sql')");
  await folder.objects({ "answer.sql": answer("third") });
  expect(await check()).toEqual([]);
});

test("a database from before the baseline is refused with one sentence; one at the baseline continues with the new chain", async () => {
  await sql(`insert into app_public.units values (1, 'One'); delete from app_private.schema_objects;
    delete from graphile_migrate.migrations;
    insert into graphile_migrate.migrations (hash, filename) values ('sha1:01', '000001.sql'), ('sha1:08', '000008.sql')`);
  const [first] = await readMigrations(join(folder.path, "committed"));
  await writeFile(
    join(folder.path, "baseline.sql"),
    `--! Replaces: 000009-last.sql sha1:09\n--! Through: ${first!.file} ${first!.hash}\n\nalter table app_public.units add floor int;\n`,
  );
  await expect(bring()).rejects.toThrow(
    /its last migration is 000008\.sql: first start the last version from before the baseline on it \(its last migration is 000009-last\.sql\), then this one\. If that one refuses it as well, a new database is needed: another DATA_DIR, or an empty database for DATABASE_URL\.$/,
  );
  await sql("insert into graphile_migrate.migrations (hash, filename) values ('sha1:09', '000009.sql')");
  await folder.commit("later", "alter table app_public.units add price int;");
  await folder.objects({ "answer.sql": answer("second") });
  await bring();
  expect(await sql("select * from app_public.units")).toEqual([
    { id: 1, name: "One", floor: null, price: null },
  ]);
  expect(await answered()).toBe("second");
  expect(await sql("select filename from graphile_migrate.migrations order by 1")).toEqual([
    { filename: "000001.sql" },
    { filename: "000002.sql" },
  ]);
  expect(await bring()).toBe(false);
});

test("a migration waits for a lock without blocking others", async () => {
  await folder.commit("later", "alter table app_public.units add price int;");
  const holder = new Client({ connectionString: database.ownerUrl });
  await holder.connect();
  await holder.query("begin; lock table app_public.units in access share mode");
  const reported: string[] = [];
  const log = {
    info() {},
    error() {},
    warn({ event }: { event: string }) {
      reported.push(event);
    },
  };
  const brought = migrate(database.ownerUrl, {
    folder: folder.path,
    authenticatorUrl: database.authenticatorUrl,
    logger: log,
  });
  await until(() => reported.includes("migration.lock_timeout"));
  // Readers of the table wait for the migration only for a moment, also while it retries.
  const reader = new Client({ connectionString: database.ownerUrl, options: "-c lock_timeout=500ms" });
  await reader.connect();
  let reads = 0;
  await until(async () => {
    await reader.query("select count(*) from app_public.units");
    reads += 1;
    return reported.length >= 4;
  });
  expect(reads).toBeGreaterThan(reported.length);
  await reader.end();
  await holder.query("commit");
  await holder.end();
  await brought;
  expect(await sql("select * from app_public.units")).toEqual([]);
  expect(await sql("select price from app_public.units")).toEqual([]);
});

test("reports manual changes that no migration can make, and keeps them", async () => {
  await sql("create rule quiet as on delete to app_public.units do instead nothing");
  await folder.objects({ "answer.sql": answer("second") });
  const reported: string[] = [];
  await migrate(database.ownerUrl, {
    folder: folder.path,
    authenticatorUrl: database.authenticatorUrl,
    logger: {
      info() {},
      error() {},
      warn: (_about: unknown, message: string) => void reported.push(message),
    },
  });
  expect(await answered()).toBe("second");
  expect(reported.filter((message) => /left unchanged/.test(message))).toEqual([
    expect.stringContaining("quiet"),
  ]);
  expect(await sql("select rulename from pg_rules where rulename = 'quiet'")).toHaveLength(1);
});
