import { afterEach, beforeEach, expect, test } from "@jest/globals";
import { Client } from "pg";
import { readCatalog } from "../../src/database/catalog.ts";
import { differences } from "../../src/database/differences.ts";
import { readReference } from "../../src/database/reference.ts";
import { reconcile } from "../../src/database/reconcile.ts";
import { migrate } from "../../src/database/migrate.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { migrationFolder, runSql, type MigrationFolder } from "../harness/migrationFolder.ts";

const tables = `
  create table app_public.units (id int primary key, name text not null);
  create table app_public.leads (id int primary key, unit int references app_public.units, kind text);
  create table app_hidden.kinds (kind text primary key, title text not null);
  create table app_hidden.columns (name text primary key, position int not null unique);
  alter table app_public.leads add constraint leads_kind foreign key (kind) references app_hidden.kinds on delete cascade;
  alter table app_public.units enable row level security;`;

const objects = {
  "units.sql": `
    create function app_hidden.visible(id int) returns boolean language sql stable as $$ select true $$;
    create policy seen on app_public.units for select using (app_hidden.visible(id));
    create view app_public.names as select id, name from app_public.units where app_hidden.visible(id);
    create function app_hidden.tg__units() returns trigger language plpgsql as $$ begin return new; end $$;
    create trigger _100_units before update on app_public.units for each row execute function app_hidden.tg__units();
    grant select (id, name), insert (name) on app_public.units to plat_user;
    revoke execute on function app_hidden.visible from public;
    grant execute on function app_hidden.visible to plat_user;
    comment on table app_public.units is 'Units.';`,
  "leads.sql": `insert into app_hidden.kinds values ('A', 'First'), ('B', 'Second');
    insert into app_hidden.columns values ('a', 1), ('b', 2), ('c', 3);`,
};

let database: TestDatabase;
let folder: MigrationFolder;
let lines: string[];
const log = {
  info: (_fields: object, message: string) => void lines.push(message),
  warn: (_fields: object, message: string) => void lines.push(message),
  error: (_fields: object, message: string) => void lines.push(message),
};

beforeEach(async () => {
  lines = [];
  database = await createTestDatabase("empty");
  folder = await migrationFolder(tables, objects);
  await bring();
  lines = [];
});
afterEach(async () => {
  await folder[Symbol.asyncDispose]();
  await database.drop();
});

const bring = () => migrate(database.ownerUrl, { folder: folder.path, logger: log });
const sql = <T extends Record<string, unknown>>(text: string) => runSql<T>(database.ownerUrl, text);

/** The differences between the database and a new one. */
async function remaining(): Promise<string[]> {
  const client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  try {
    const { catalog, declaredTables } = await readReference(client, database.ownerUrl, {
      folder: folder.path,
    });
    return differences(await readCatalog(client, { rowsOf: declaredTables }), catalog).map(
      ({ identity }) => identity,
    );
  } finally {
    await client.end();
  }
}

/** Applies the file with one text replaced by another. */
async function edit(
  file: keyof typeof objects,
  ...replacements: [from: string, to: string][]
): Promise<void> {
  let text = objects[file];
  for (const [from, to] of replacements) {
    expect(text).toContain(from);
    text = text.replace(from, () => to);
  }
  await folder.objects({ [file]: text });
  await bring();
}

test("a function whose body changed is replaced, and nothing else is touched", async () => {
  const [before] = await sql(
    "select oid, (select oid from pg_policy where polname = 'seen') as policy from pg_proc where proname = 'visible'",
  );
  await edit("units.sql", ["select true", "select id > 0"]);
  expect(lines).toEqual(["Schema, function: 0 created, 1 replaced, 0 dropped."]);
  expect(
    await sql(
      "select oid, (select oid from pg_policy where polname = 'seen') as policy from pg_proc where proname = 'visible'",
    ),
  ).toEqual([before]);
  expect(await remaining()).toEqual([]);
});

test("a function with another result is created again, with the policies, views and grants that depend on it", async () => {
  await edit(
    "units.sql",
    [
      "returns boolean language sql stable as $$ select true $$",
      "returns int language sql stable as $$ select 1 $$",
    ],
    ["using (app_hidden.visible(id))", "using (app_hidden.visible(id) = 1)"],
    ["where app_hidden.visible(id)", "where app_hidden.visible(id) = 1"],
  );
  expect(await remaining()).toEqual([]);
  expect(await sql("select * from app_public.names")).toEqual([]);
});

test("a view of a function with another result is created after it, whatever the code of the first error", async () => {
  await edit(
    "units.sql",
    [
      "returns boolean language sql stable as $$ select true $$",
      "returns int[] language sql stable as $$ select array[1] $$",
    ],
    ["using (app_hidden.visible(id))", "using (id = any ((select app_hidden.visible(id))::int[]))"],
    ["where app_hidden.visible(id)", "where id = any ((select app_hidden.visible(id))::int[])"],
  );
  expect(await remaining()).toEqual([]);
  expect(await sql("select * from app_public.names")).toEqual([]);
});

test("a function with other arguments, a view with other columns, a trigger at another time: nothing obsolete remains", async () => {
  await edit(
    "units.sql",
    [
      "create function app_hidden.visible(id int)",
      "create function app_hidden.visible(id int, name text default '')",
    ],
    ["select id, name from", "select name, id as number from"],
    ["before update", "after insert or update"],
  );
  expect(await remaining()).toEqual([]);
  expect(await sql("select proargnames from pg_proc where proname = 'visible'")).toEqual([
    { proargnames: ["id", "name"] },
  ]);
});

test("objects that are in no file are dropped, and manual changes are undone", async () => {
  await sql(`
    create function app_public.by_hand() returns int language sql as 'select 1';
    grant delete on app_public.units to plat_anonymous;
    comment on table app_public.units is 'Changed by hand.';
    drop trigger _100_units on app_public.units;`);
  await edit("units.sql", [
    "comment on table",
    "comment on column app_public.units.name is 'Name.'; comment on table",
  ]);
  expect(await remaining()).toEqual([]);
  await folder.objects({ "units.sql": undefined });
  await bring();
  expect(await remaining()).toEqual([]);
  expect(await sql("select count(*)::int as count from pg_policy")).toEqual([{ count: 0 }]);
});

test("declared rows follow the file; referenced ones are not deleted", async () => {
  await sql("insert into app_public.leads (id, kind) values (1, 'B')");
  await edit("leads.sql", ["'First'), ('B', 'Second')", "'Changed'), ('B', 'Second'), ('C', 'Third')"]);
  expect(await sql("select * from app_hidden.kinds order by kind")).toEqual([
    { kind: "A", title: "Changed" },
    { kind: "B", title: "Second" },
    { kind: "C", title: "Third" },
  ]);
  await expect(edit("leads.sql", [", ('B', 'Second')", ""])).rejects.toThrow(
    'The row app_hidden.kinds {"kind":"B"} is declared no longer, but 1 row(s) of app_public.leads refer to it',
  );
  expect(await sql("select count(*)::int as count from app_public.leads")).toEqual([{ count: 1 }]);
  await sql("delete from app_public.leads");
  await edit("leads.sql", [", ('B', 'Second')", ""]);
  expect(await sql("select kind from app_hidden.kinds")).toEqual([{ kind: "A" }]);
});

test.each([
  ["one is put in between", "('a', 1), ('new', 2), ('b', 3), ('c', 4)"],
  ["two change places", "('a', 2), ('b', 1), ('c', 3)"],
  ["one takes the place of one that goes", "('a', 1), ('c', 2)"],
])("declared rows with positions: %s", async (_title, rows) => {
  await edit("leads.sql", ["('a', 1), ('b', 2), ('c', 3)", rows]);
  const found = await sql<{ name: string; position: number }>(
    "select name, position from app_hidden.columns order by position",
  );
  expect(found.map(({ name, position }) => `('${name}', ${position})`).sort()).toEqual(
    rows.split(/, (?=\()/).sort(),
  );
});

test("different structure is reported, one sentence each, and not changed", async () => {
  await sql(`
    create index by_hand on app_public.units (name);
    alter table app_public.units alter name drop not null;
    alter table app_public.leads drop column unit`);
  await edit("units.sql", ["select true", "select id > 0"]);
  expect(lines).toEqual([
    "Schema, function: 0 created, 1 replaced, 0 dropped.",
    "The database lacks column app_public.leads.unit, which the migrations create.",
    expect.stringMatching(
      /^The database has another column app_public\.units\.name than the migrations create: /,
    ),
    expect.stringMatching(/^The database lacks constraint leads_unit_fkey on app_public\.leads/),
    expect.stringMatching(/^The database has index .*by_hand.*, which the migrations do not create\.$/),
  ]);
  expect(await sql("select count(*)::int as count from pg_indexes where indexname = 'by_hand'")).toEqual([
    { count: 1 },
  ]);
});

test("an object that needs a missing column is refused, after the sentence about that column", async () => {
  await sql("drop view app_public.names; alter table app_public.units drop column name cascade");
  await expect(edit("units.sql", ["select true", "select id > 0"])).rejects.toThrow(
    /^The database could not create view app_public\.names: column .*name.* does not exist/,
  );
  expect(lines[0]).toBe("The database lacks column app_public.units.name, which the migrations create.");
});

test("a declared row with a different result is reported, and does not prevent a start", async () => {
  await sql("insert into app_hidden.kinds values ('X', 'Undeletable')");
  await folder.objects({
    "keep.sql": `
      create function app_hidden.keep() returns trigger language plpgsql as $$ begin return null; end $$;
      create trigger keep before delete on app_hidden.kinds for each row execute function app_hidden.keep();`,
  });
  await bring();
  expect(lines).toContain(
    'The database has row app_hidden.kinds {"kind":"X"}, which the files of objects do not create.',
  );
});

test("structure that depends on a function is never dropped with it", async () => {
  await sql("alter table app_public.units add constraint by_hand check (app_hidden.visible(id))");
  await expect(
    edit("units.sql", [
      "create function app_hidden.visible(id int)",
      "create function app_hidden.visible(id int, name text default '')",
    ]),
  ).rejects.toThrow(
    "The constraint by_hand on app_public.units depends on a function or view that must be recreated or dropped",
  );
  expect(await sql("select count(*)::int as count from pg_constraint where conname = 'by_hand'")).toEqual([
    { count: 1 },
  ]);
});

test("an unchanged table is not locked; a changed one is waited for repeatedly, and then the blocking session is named", async () => {
  const holder = new Client({ connectionString: database.ownerUrl, application_name: "a long report" });
  await holder.connect();
  const target = new Client({ connectionString: database.ownerUrl });
  await target.connect();
  try {
    await holder.query(
      "begin; lock table app_public.leads in access exclusive mode; lock table app_public.units in access share mode",
    );
    await edit("units.sql", ["select true", "select id > 0"], ["'Units.'", "'All units.'"]);

    await folder.objects({
      "units.sql": objects["units.sql"].replace("create policy seen", "create policy known"),
    });
    const { catalog, declaredTables } = await readReference(target, database.ownerUrl, {
      folder: folder.path,
    });
    lines = [];
    const patiently = { declaredTables, log, lockTimeoutMs: 20 };
    await expect(reconcile(target, catalog, { ...patiently, attempts: 2 })).rejects.toThrow(
      /^The schema could not be changed in 2 attempts, since the table app_public\.units is locked by process \d+ \(a long report, in a transaction since .*\)\. End what holds the lock/,
    );
    expect(lines).toEqual([expect.stringMatching(/Retrying in 100 ms\.$/)]);
    const waiting = reconcile(target, catalog, {
      ...patiently,
      log: { ...log, warn: () => void holder.query("rollback") },
    });
    expect((await waiting).changes.map(({ identity }) => identity).toSorted()).toContain(
      "policy known on app_public.units",
    );
    expect(await remaining()).toEqual([]);
  } finally {
    await holder.end();
    await target.end();
  }
});
