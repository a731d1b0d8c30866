/** Tenancy of tables as derived from the catalog, compared with their actual rows and keys. */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client } from "pg";
import { filledTables } from "../../src/database/catalogRows.ts";
import { readMovedTables } from "../../src/cli/move/movedTables.ts";
import { readTenancies, type Tenancies, type Tenancy } from "../../src/database/tenancy.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let client: Client;
let found: Tenancies;

beforeAll(async () => {
  database = await createTestDatabase();
  client = new Client({ connectionString: database.ownerUrl });
  await client.connect();
  found = await readTenancies(client);
});
afterAll(async () => {
  await client?.end();
  await database?.drop();
});

const names = async (text: string, values: unknown[] = []) =>
  (await client.query<{ name: string }>(text, values)).rows.map(({ name }) => name).toSorted();
const tablesOf = (...tenancies: Tenancy[]) =>
  found.tables.filter(({ tenancy }) => tenancies.includes(tenancy)).map(({ table }) => table);

test("the tenancy of each table is known", async () => {
  expect(found.tables.map(({ table }) => table).toSorted()).toEqual(
    await names(`select schemaname || '.' || tablename as name from pg_tables t
      where schemaname like 'app\\_%' and not exists (select from pg_inherits
        where inhrelid = format('%I.%I', t.schemaname, t.tablename)::regclass)`),
  );
  expect(tablesOf("none")).toEqual([]);
  expect(tablesOf("direct")).toEqual(
    [
      "app_public.organizations",
      ...(await names(
        `select table_schema || '.' || table_name as name from information_schema.columns c
         join information_schema.tables using (table_schema, table_name)
         where column_name = 'organization_id' and is_nullable = 'NO' and table_type = 'BASE TABLE'
           and table_schema || '.' || table_name = any ($1)`,
        // The directory of moved organizations remains.
        [
          found.tables
            .map(({ table }) => table)
            .filter((table) => table !== "app_private.organization_moves"),
        ],
      )),
    ].toSorted(),
  );
});

test("reference tables are those that migrations fill", async () => {
  // Rows that each installation has from the start, and changes.
  const begun = ["app_private.access_versions", "app_private.schema_objects", "app_private.stored_files"];
  const filled = [...(await filledTables(client)), ...begun];
  const references = [...tablesOf("reference"), ...begun];
  expect(new Set(references)).toEqual(new Set(filled));
});

test("keys lack the organization only where their definitions do", async () => {
  const rows = tablesOf("direct", "parent", "partly");
  const unique = await names(
    `select c.relname as name from pg_index i join pg_class c on c.oid = i.indexrelid
     where (i.indisunique or i.indisexclusion) and i.indrelid = any ($1::text[]::regclass[])
       and 'organization_id' <> all (array(select pg_get_indexdef(i.indexrelid, place, true) from generate_series(1, i.indnkeyatts) place))
       and not (i.indrelid = 'app_public.organizations'::regclass and i.indisprimary)`,
    [rows],
  );
  expect(found.uniqueKeys.map(({ name }) => name).toSorted()).toEqual(unique);
  const foreign = await names(
    `select f.conname as name from pg_constraint f
     where f.contype = 'f' and f.conparentid = 0 and f.conrelid = any ($1::text[]::regclass[]) and f.confrelid = any ($1::text[]::regclass[])
       and pg_get_constraintdef(f.oid) !~ 'KEY \\((.*, )?organization_id[,)].* REFERENCES [a-z_.]+\\((.*, )?organization_id[,)]'
       and pg_get_constraintdef(f.oid) !~ 'KEY \\(organization_id\\) REFERENCES app_public.organizations'`,
    [rows],
  );
  expect(found.foreignKeys.map(({ name }) => name).toSorted()).toEqual(foreign);
  expect(found.outwardKeys).toEqual([]);
});

test("a new table without a reference to an organization is reported, and one with an indirect reference is not", async () => {
  await client.query("begin");
  await client.query(`
    create table app_public.nobodys (id uuid primary key);
    create table app_public.leads_own (id uuid primary key, lead_id uuid not null references app_public.leads (id))`);
  const { tables, uniqueKeys } = await readTenancies(client);
  await client.query("rollback");
  expect(tables.filter(({ table }) => /nobodys|leads_own/.test(table))).toEqual([
    {
      table: "app_public.leads_own",
      tenancy: "parent",
      path: ["lead_id → app_public.leads", "organization_id"],
    },
    { table: "app_public.nobodys", tenancy: "none", path: [] },
  ]);
  expect(uniqueKeys.map(({ name }) => name)).toEqual(expect.arrayContaining(["leads_own_pkey"]));
});

test("all rows of an organization move with it, and it is defined for each table of accounts whether it moves", async () => {
  const { tables } = await readMovedTables(client);
  const moved = new Set(tables.map(({ name }) => name));
  const staying = found.tables
    .filter(({ table, tenancy }) => ["direct", "parent", "partly"].includes(tenancy) && !moved.has(table))
    .map(({ table }) => table);
  expect(staying).toEqual([
    "app_private.event_batches",
    "app_private.job_deaths",
    "app_private.pending_events",
    "app_private.stored_files",
  ]);
  // Without a key, all rows of a table are replaced if one differs.
  expect(tables.filter(({ key }) => key.length === 0).map(({ name }) => name)).toEqual([
    "app_hidden.promotion_targets",
    "app_private.lead_turns",
    "app_private.notification_items",
    "app_private.search_backlog",
  ]);
});
