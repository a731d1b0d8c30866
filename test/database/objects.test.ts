import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { isAbsolute } from "node:path";
import { Client } from "pg";
import { onConnection } from "../../src/database/onConnection.ts";
import { applyObjects, schemaHash, type Applied } from "../../src/database/objects.ts";
import { SchemaError } from "../../src/database/schemaError.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";
import { migrationFolder } from "../harness/migrationFolder.ts";

const tables = `
  create table app_public.parents (id int primary key);
  create table app_public.children (id int primary key, parent int references app_public.parents, name text);`;

let database: TestDatabase;
let client: Client;
beforeAll(async () => {
  database = await createTestDatabase("empty");
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  await client.query("create schema app_public; create schema app_hidden; create schema app_private");
  await client.query(tables);
});
afterAll(async () => {
  await client.end();
  await database.drop();
});

/** Applies the files, inspects the result, and rolls back. */
async function apply<T>(
  files: Record<string, string>,
  inspect: (applied: Applied) => Promise<T> | T,
  validate = true,
): Promise<T> {
  await using folder = await migrationFolder("", files);
  await client.query("begin");
  try {
    return await inspect(await applyObjects(client, { folder: folder.path, validate }));
  } finally {
    await client.query("rollback");
  }
}

async function refusal(files: Record<string, string>): Promise<SchemaError> {
  const error = await apply(files, () => undefined).catch((caught: unknown) => caught);
  expect(error).toBeInstanceOf(SchemaError);
  return error as SchemaError;
}

test("files may use objects of later files: functions, views, rows, and results of generators", async () => {
  const files = {
    "area/first.sql": `
      create view app_public.doubles as select id, app_public.twice(id) as twice from app_public.children;
      create function app_public.atomic() returns int language sql stable
        begin atomic; select case when true then app_public.twice(2) end; end;
      comment on function app_public.made() is 'Made by a generator; in a later file.';
      grant select on app_public.doubles to public;
      insert into app_public.children (id, parent, name) values (1, 1, 'a;b');`,
    "area/second.sql": `
      create function app_public.twice(n int) returns int language sql immutable as $$ select 2 * n $$;
      create function app_private.make() returns void language plpgsql as $do$
      begin
        execute 'create function app_public.made() returns int language sql stable as $$ select 1 $$';
      end $do$;
      select app_private.make();
      insert into app_public.parents values (1);`,
  };
  await apply(files, async ({ declaredTables, statements }) => {
    expect(declaredTables).toEqual(["app_public.children", "app_public.parents"]);
    expect(statements).toBe(9);
    const { rows } = await client.query("select twice, app_public.atomic() as four from app_public.doubles");
    expect(rows).toEqual([{ twice: 2, four: 4 }]);
  });
});

test("areas are applied in the order of their names: an earlier one that uses objects of a later one is an error", async () => {
  const first = "insert into app_public.children (id, parent) values (1, 1);";
  const second = "insert into app_public.parents values (1);";
  await apply({ "1/first.sql": first, "1/second.sql": second }, ({ statements }) =>
    expect(statements).toBe(2),
  );
  const error = await refusal({ "1/first.sql": first, "2/second.sql": second });
  expect(error.message).toMatch(/1\/first\.sql:1:1: .*foreign key/);
});

test("an error has file, line and column, the message of PostgreSQL, and its hint", async () => {
  const error = await refusal({
    "a/good.sql": "comment on table app_public.parents is 'Good.';",
    "a/wrong.sql":
      "-- Comments count as lines.\ncomment on table app_public.parents is 'é';\n\ncreate policy p on app_public.children\n  using (nam = 'x');\n",
  });
  expect(error).toMatchObject({ line: 5, column: 10, code: "42703" });
  expect(isAbsolute(error.file)).toBe(false);
  expect(error.message).toMatch(
    /objects\/a\/wrong\.sql:5:10: column "nam" does not exist\n {2}Hint: .*"children\.name"/,
  );
});

test("an error without a position names the failed statement, and the function that it called", async () => {
  const error = await refusal({
    "fails.sql": `
      create function app_private.fails() returns void language plpgsql as $$ begin raise 'No.'; end $$;
      comment on table app_public.parents is 'Good.';
      select app_private.fails();`,
  });
  expect(error.message).toMatch(/fails\.sql:4:7: No\.\n {2}In: PL\/pgSQL function app_private\.fails\(\)/);
});

test("of several errors, the cause is reported, not those that result from it", async () => {
  const error = await refusal({
    "a/1.sql": "comment on function app_public.late() is 'Made below.';",
    "a/2.sql": "insert into app_public.parents values ('x');\nselect app_private.make_late();",
  });
  expect(error.message).toMatch(/2\.sql:1:40: invalid input syntax for type integer/);
});

test("bodies of functions are checked after all objects are created; all errors are reported, with their lines", async () => {
  const files = {
    "bodies.sql": `
create function app_public.one() returns int language sql stable as $$
  select id
  from app_public.nothing
$$;
create function app_public.two() returns int language plpgsql as $$
begin
  return 1 +;
end $$;`,
  };
  const error = await refusal(files);
  expect(error.line).toBe(4);
  expect(error.message).toMatch(/bodies\.sql:4:8: relation "app_public\.nothing" does not exist/);
  expect(error.message).toMatch(/bodies\.sql:8:\d+: syntax error/);
  await apply(files, ({ statements }) => expect(statements).toBe(2), false);
});

test("the checksum of a folder depends only on the texts and names of its files", async () => {
  await using folder = await migrationFolder("", { "a.sql": "select 1;" });
  const sum = await schemaHash(folder.path);
  await folder.objects({ "notes.txt": "no SQL" });
  expect(await schemaHash(folder.path)).toBe(sum);
  await folder.objects({ "a.sql": "select 2;" });
  const changed = await schemaHash(folder.path);
  expect(changed).not.toBe(sum);
  await folder.objects({ "a.sql": undefined, "b.sql": "select 2;" });
  expect(await schemaHash(folder.path)).not.toBe(changed);
});

test("objects of the API are committed and reported before the triggers of 99-triggers are created", async () => {
  await using folder = await migrationFolder("", {
    "01-area/shown.sql": `
      create function app_public.shown() returns int language sql stable as $$ select 1 $$;
      insert into app_public.children (id, name) values (1, 'one');`,
    "99-triggers/last.sql": `
      create function app_private.tg_last() returns trigger language plpgsql as $$ begin return null; end $$;
      create trigger last after insert on app_public.children for each row execute function app_private.tg_last();
      insert into app_public.parents (id) values (2);`,
  });
  let calls = 0;
  await client.query("begin");
  const { declaredTables } = await applyObjects(client, { folder: folder.path, shown: () => calls++ });
  await client.query("commit");
  expect(calls).toBe(1);
  expect(declaredTables).toEqual(["app_public.children", "app_public.parents"]);
  const { rows } = await client.query(
    `select a.xmin::text::bigint < b.xmin::text::bigint as before from pg_proc a, pg_trigger b
     where a.oid = 'app_public.shown'::regproc and b.tgname = 'last'`,
  );
  expect(rows).toEqual([{ before: true }]);
});

test("no object of 99-triggers is visible in the API", async () => {
  const migrated = await createTestDatabase();
  // All objects were created in one transaction: those with a command number after the first trigger of
  // events belong to this area.
  const { rows } = await onConnection(migrated.ownerUrl, (owner) =>
    owner.query(`
      with made as (
        select n.nspname as schema, p.oid::regprocedure::text as object, p.xmin, p.cmin from pg_proc p join pg_namespace n on n.oid = p.pronamespace
        union all select n.nspname, c.oid::regclass::text, c.xmin, c.cmin from pg_class c join pg_namespace n on n.oid = c.relnamespace
          where c.relkind in ('v', 'c')
        union all select n.nspname, c.oid::regclass || '.' || a.attname, a.xmin, a.cmin from pg_attribute a join pg_class c on c.oid = a.attrelid
          join pg_namespace n on n.oid = c.relnamespace where a.attacl is not null
        union all select n.nspname, d.description, d.xmin, d.cmin from pg_description d
          left join pg_proc p on d.classoid = 'pg_proc'::regclass and p.oid = d.objoid
          left join pg_class c on d.classoid = 'pg_class'::regclass and c.oid = d.objoid
          join pg_namespace n on n.oid = coalesce(p.pronamespace, c.relnamespace)),
      first as (select xmin, min(cmin::text::int) as number from made where object ~ '__event_insert' group by xmin)
      select schema, count(*)::int as objects from made join first on first.xmin = made.xmin and made.cmin::text::int >= first.number
      group by schema order by 1`),
  );
  await migrated.drop();
  expect(rows).toEqual([{ schema: "app_private", objects: expect.any(Number) }]);
});
