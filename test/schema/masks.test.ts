/**
 * Masked values are not readable on any path. Generated from the catalog: each masked column of some rows gets a
 * unique value. Then many kinds of viewers read everything that SQL allows, and values that the field hides from them
 * must not occur: in other fields, events, webhooks, views, reports, exports, filters, search. Also tests relations
 * that are never null, as the same viewers.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { createHash } from "node:crypto";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { buildSchema, isEnumType, isInputObjectType, isObjectType } from "graphql";
import { demoUser } from "../../src/demo/index.ts";
import { startApi } from "../harness/api.ts";
import { startTwoOrganizations, type TwoOrganizations } from "../harness/twoOrganizations.ts";

interface Masked {
  table: string;
  column: string;
  /** As used in a cast. */
  type: string;
  /** The category of its type, J for JSON. */
  category: string;
  /** The function that reads it, or null if there is none. */
  reader: string | null;
}

/** A value that exists in one place only. */
interface Planted extends Masked {
  id: string;
  /** The text that reveals it; null for values that others share, such as booleans. */
  marker: string | null;
  value: unknown;
}

interface Viewer {
  name: string;
  settings: Record<string, string>;
}

let world: TwoOrganizations;
let columns: Masked[];
const planted: Planted[] = [];
let viewers: Viewer[];
/** For each table and view: the source of its rows t, and SQL for the JSON of one, as the API returns it. */
let served: { table: string; source: string; expression: string }[];
/** For each subject of reports: SQL for all its columns of a row t. */
let reported: typeof served;
/** The tables that have masked columns. */
let maskedTables: string[];

const maskedQuery = `
  select c.oid::regclass::text as table, a.attname as column, format_type(a.atttypid, a.atttypmod) as type,
    case when b.typname = 'jsonb' then 'J' else b.typcategory::text end as category,
    (select p.oid::regproc::text from pg_proc p where p.pronamespace = c.relnamespace and p.proname = c.relname || '_' || a.attname
      and p.pronargs = 1 and p.proargtypes[0] = c.reltype) as reader
  from pg_class c join pg_attribute a on a.attrelid = c.oid and not a.attisdropped join pg_type t on t.oid = a.atttypid
  join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)
  where c.relnamespace = 'app_public'::regnamespace and c.relname <> 'events' and col_description(c.oid, a.attnum) ~ '(^|\\n)@masked'
  order by 1, 2`;

/** Everything that is returned for a row: unmasked columns, and computed fields that are not records. */
const servedQuery = `
  select c.oid::regclass::text as table, app_hidden.source_of(c.oid) || ' t cross join lateral (select '
    || case when c.relkind in ('r', 'p') then format('row(%s)::%s', app_hidden.row_columns(c.oid, 't'), c.oid::regclass) else 't' end || ' as t offset 0) f' as source, 'jsonb_build_array(' || string_agg(x.expression, ', ') || ')' as expression from pg_class c
  cross join lateral (
    select format('(select jsonb_build_array(%s))', string_agg(f, ', ')) as expression from (
      select f, (row_number() over ()) / 90 as portion from (
        select format('t.%I', a.attname) as f from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
          and coalesce(col_description(c.oid, a.attnum), '') !~ '(^|\\n)@writeOnly'
        union all
        select case when obj_description(p.oid) ~ '(^|\\n)@reads ' or p.proname = any (select c.relname || '_' || m from unnest(app_hidden.masked_columns(c.oid)) m)
          then app_hidden.of_masked(c.oid, format('%s(t)', p.oid::regproc)) else format('%s(f.t)', p.oid::regproc) end from pg_proc p join pg_type r on r.oid = p.prorettype
          left join pg_type e on e.oid = r.typelem and r.typcategory = 'A'
          where p.pronamespace = 'app_public'::regnamespace and p.pronargs = 1 and p.proargtypes[0] = c.reltype and p.provolatile <> 'v'
            and not p.proretset and (r.typtype <> 'c' or exists (select from pg_class k where k.oid = r.typrelid and k.relkind = 'c'))
            and has_function_privilege('plat_user', p.oid, 'execute')) all_fields) portions group by portion) x
  where c.relnamespace = 'app_public'::regnamespace and c.relkind in ('r', 'p', 'v') and c.relname not like '%\\_values'
    and has_any_column_privilege('plat_user', c.oid, 'select')
  group by c.oid order by 1`;

const reportedQuery = `
  select 'app_public.' || s.table_name as table, app_hidden.source_of(('app_public.' || s.table_name)::regclass) || ' t' as source,
    'jsonb_build_array(' || string_agg('(' || app_hidden.of_masked(('app_public.' || s.table_name)::regclass, c.expression) || ')', ', ') || ')' as expression
  from app_hidden.report_subjects s join app_hidden.report_columns c using (subject) group by s.subject, s.table_name order by 1`;

/** A unique value of a type: the text that reveals it, and its JSON. */
function values(n: number, { category }: Masked): [marker: string, value: unknown][] {
  // In the future, so that nothing has ended by it; dates of birth are far in the past.
  const days = [2900, 1900].map(
    (from) => `${from + (n % 100)}-${String(2 + Math.floor(n / 100)).padStart(2, "0")}-17`,
  );
  const words = `Zebra${n}zz`;
  if (category === "N") return [[String(7_000_000 + n), 7_000_000 + n]];
  if (category === "D") return days.map((day) => [day, day]);
  if (category === "J") return [[words, { zebra: words }]];
  if (category === "C") return [[words, { thoroughfare: words, locality: "Toronto", country: "CA" }]];
  return [
    [words, words],
    [`zebra${n}zz`, `zebra${n}zz@example.com`],
    [`+1416555${1000 + n}`, `+1416555${1000 + n}`],
    [`zebra${n}zz`, `https://zebra${n}zz.example.com/`],
  ];
}

/**
 * Writes the value into the row, without rules but with its event, and returns it as JSON; null if its type
 * does not accept it.
 */
async function write(column: Masked, id: string, value: unknown): Promise<string | null> {
  await world.client.query("savepoint value");
  try {
    const { rows } = await world.client.query(
      `update ${column.table} t set ${column.column} = r.${column.column} from jsonb_populate_record(null::${column.table}, $2) r
       where t.id = $1 and r.${column.column} is distinct from null returning to_jsonb(t.${column.column})::text as written`,
      [id, JSON.stringify({ [column.column]: value })],
    );
    return rows[0]?.written ?? null;
  } catch (error) {
    if (!/^2[23]/.test((error as { code?: string }).code ?? "")) throw error;
    await world.client.query("rollback to value");
    return null;
  }
}

async function plant(column: Masked, id: string): Promise<void> {
  for (const [marker, value] of values(planted.length, column)) {
    const written = await write(column, id, value);
    if (written === null) continue;
    // Booleans are equal everywhere.
    planted.push({ ...column, id, value, marker: written.includes(marker) ? marker : null });
    return;
  }
}

/** The permissions that the functions of masked columns check. */
async function permissionsOf(masked: Masked[]): Promise<string[]> {
  const { rows } = await world.client.query<{ permission: string }>(
    "select distinct m[1] as permission from pg_proc p, regexp_matches(p.prosrc, '''([a-z]+\\.[a-z]+)''', 'g') m where p.oid::regproc::text = any ($1)",
    [masked.map(({ reader }) => reader)],
  );
  return rows.map(({ permission }) => permission);
}

async function findViewers(): Promise<Viewer[]> {
  const { rows: users } = await world.client.query<{ id: string; name: string }>(
    `select u.id, concat(u.first_name, ' ', string_agg(m.role || ' ' || o.name, ', ')) as name from app_public.users u
     left join app_public.organization_user_connections m on m.user_id = u.id left join app_public.organizations o on o.id = m.organization_id
     group by u.id order by u.id`,
  );
  const { rows: permissions } = await world.client.query<{ permission: string; masks: boolean }>(
    `select permission, permission = any ($1) as masks from (select distinct permission from app_private.role_permissions) p order by 1`,
    [await permissionsOf(columns)],
  );
  const { rows: owners } = await world.client.query<{ id: string }>(
    "select user_id as id from app_public.organization_user_connections where organization_id = $1 and role = 'OWNER'",
    [world.organizations.theirs],
  );
  const all = permissions.map(({ permission }) => permission);
  const token = (name: string, scopes: string[]): Viewer => ({
    name,
    settings: { user_id: owners[0]!.id, token_id: world.stranger, scopes: scopes.join(",") },
  });
  return [
    { name: "a visitor", settings: {} },
    ...users.map(({ id, name }) => ({ name, settings: { user_id: id } })),
    // Permissions to see records, and all but one of the permissions of masks.
    ...all
      .filter((name) => name.endsWith(".read"))
      .map((name) => token(`the owner's token with ${name}`, [name])),
    ...permissions
      .filter(({ masks }) => masks)
      .map(({ permission }) =>
        token(
          `the owner's token without ${permission}`,
          all.filter((other) => other !== permission),
        ),
      ),
  ];
}

beforeAll(async () => {
  world = await startTwoOrganizations();
  const { client } = world;
  await client.query("set plan_cache_mode = force_generic_plan");
  ({ rows: columns } = await client.query<Masked>(maskedQuery));
  ({ rows: served } = await client.query(servedQuery));
  ({ rows: reported } = await client.query(reportedQuery));
  viewers = await findViewers();
  const tables = [...new Set(columns.map(({ table }) => table))];
  maskedTables = [...tables, "app_public.events"];
  await client.query("begin; set local session_replication_role = replica");
  for (const table of tables) {
    const { rows: triggers } = await client.query<{ enable: string }>(
      `select format('alter table %s enable always trigger %I', tgrelid::regclass, tgname) as enable from pg_trigger
       where tgrelid = $1::regclass and (tgname like '\\_950\\_events\\_%' or tgname like '\\_530\\_search%')`,
      [table],
    );
    for (const { enable } of triggers) await client.query(enable);
    const has = (name: string) =>
      world.tables.find((one) => one.name === table)!.columns.some((column) => column.name === name);
    const kind = has("status") ? "status" : "()";
    const { rows } = await client.query<{ id: string }>(
      `select min(id::text) as id from ${table} where id = any ($1) group by ${kind} order by 1`,
      [world.theirs.get(table)],
    );
    for (const { id } of rows.slice(0, 4))
      for (const column of columns.filter((one) => one.table === table)) await plant(column, id);
  }
  await client.query("commit");
});
afterAll(() => world?.end());

/**
 * PERF: all viewers execute the same statements, and planning all the fields of a table takes longer than
 * reading them. One plan per role, because a plan with an inlined function does not check again who may
 * execute it.
 */
const plannedOnce = (role: string, text: string, given: unknown[]) => ({
  name: createHash("md5").update(`${role} ${text}`).digest("hex"),
  text,
  values: given,
  rowMode: "array" as const,
});

/** Executes statements as a viewer; refused ones return nothing. */
async function as<T>(
  viewer: Viewer,
  work: (read: (sql: string, values?: unknown[]) => Promise<any[]>) => Promise<T>,
): Promise<T> {
  const { client } = world;
  await client.query("begin");
  try {
    for (const [name, value] of Object.entries(viewer.settings))
      await client.query("select set_config($1, $2, true)", [`plat.${name}`, value]);
    return await work(async (sql, given = []) => {
      const role = viewer.settings.user_id ? "plat_user" : "plat_anonymous";
      await client.query(`savepoint look; set local role ${role}`);
      try {
        const { rows } = await client.query(plannedOnce(role, sql, given));
        await client.query("reset role");
        return rows;
      } catch (error) {
        if (!/^(42501|PLAT0|2[23]...)$/.test((error as { code: string }).code))
          throw new Error(`${viewer.name}: ${sql}`, { cause: error });
        await client.query("rollback to look");
        return [];
      }
    });
  } finally {
    await client.query("rollback");
  }
}

type Read = Parameters<Parameters<typeof as>[1]>[0];

/**
 * The same without policies, because readers of a whole stream also read events of records that they do not
 * see otherwise.
 */
const unguarded: Read = async (sql, given = []) =>
  (await world.client.query(plannedOnce("plat_owner", sql, given))).rows;

/** The masking view of a table. */
const viewOf = (table: string) => table.replace("app_public.", "app_hidden.masked_");

/** The values that are hidden from the viewer. */
async function hidden(read: Read): Promise<Planted[]> {
  const found: Planted[] = [];
  for (const table of new Set(planted.map((one) => one.table))) {
    const here = columns.filter((one) => one.table === table && one.reader);
    // The owner, to whom no policy applies, calls the functions directly.
    const expression = ({ column, reader }: Masked) => (read === unguarded ? `${reader}(t)` : `t.${column}`);
    const rows = await read(
      `select t.id, jsonb_build_object(${here.map((one) => `'${one.column}', ${expression(one)}`).join(", ")})
       from ${read === unguarded ? table : viewOf(table)} t where t.id = any ($1)`,
      [planted.filter((one) => one.table === table).map(({ id }) => id)],
    );
    const fields = new Map<string, Record<string, unknown>>(rows as [string, Record<string, unknown>][]);
    for (const one of planted.filter((other) => other.table === table)) {
      const field = fields.get(one.id)?.[one.column];
      if (one.marker === null ? field == null : !JSON.stringify(field ?? null).includes(one.marker))
        found.push(one);
    }
  }
  return found;
}

/** PERF: both are queried once for each viewer, because no test changes their data. */
const [known, knownInEvents] = [new Map<Viewer, Planted[]>(), new Map<Viewer, Planted[]>()];
async function hiddenFrom(viewer: Viewer, read: Read): Promise<Planted[]> {
  const found = known.get(viewer) ?? (await hidden(read));
  known.set(viewer, found);
  return found;
}
async function hiddenInEvents(viewer: Viewer): Promise<Planted[]> {
  const found = knownInEvents.get(viewer) ?? (await hidden(unguarded));
  knownInEvents.set(viewer, found);
  return found;
}

test("every masked column has a value to search for", () => {
  expect(columns.length).toBeGreaterThan(30);
  const without = columns.filter(
    ({ table, column }) => !planted.some((one) => one.table === table && one.column === column),
  );
  expect(without).toEqual([]);
  const alike = planted
    .filter(({ marker }) => marker === null)
    .map(({ table, column }) => `${table}.${column}`);
  expect([...new Set(alike)]).toEqual(["app_public.organization_user_connections.notifications"]);
});

test("no viewer finds hidden values in fields, events, views, reports or exports", async () => {
  const revealed: string[] = [];
  let withheld = 0;
  let shown = 0;
  for (const viewer of viewers)
    await as(viewer, async (read) => {
      const secrets = await hiddenFrom(viewer, read);
      shown += planted.length - secrets.length;
      const secretsOfEvents = await hiddenInEvents(viewer);
      withheld += secrets.length;
      for (const { table, source, expression } of [...served, ...reported]) {
        const rows = await read(
          `select ${expression}::text from ${source} ${table === "app_public.events" ? "where t.subject_id = any ($1)" : "where $1::uuid[] is not null"}`,
          [planted.map(({ id }) => id)],
        );
        const text = rows.map(([row]) => row as string).join("\n");
        for (const { marker, table: of, column, id } of /events|price_changes/.test(table)
          ? secretsOfEvents
          : secrets)
          if (marker !== null && text.includes(marker))
            revealed.push(`${viewer.name}: ${of}.${column} of ${id} in ${table}`);
      }
    });
  expect(withheld).toBeGreaterThan(500);
  expect(shown).toBeGreaterThan(200);
  expect([...new Set(revealed.map((line) => line.replace(/ of [0-9a-f-]{36}/, "")))]).toEqual([]);
});

test("a webhook's payload contains what the fields return to its viewer", async () => {
  const revealed: string[] = [];
  let checked = 0;
  for (const viewer of viewers)
    await as(viewer, async (read) => {
      const secrets = await hiddenInEvents(viewer);
      const visible = await read("select e.id from app_public.events e where e.subject_id = any ($1)", [
        planted.map(({ id }) => id),
      ]);
      // As the service creates them: without policies, for the given viewer.
      const { rows: bodies } = await world.client.query<{ id: string; body: { data: any; changes: any } }>(
        "select e.subject_id as id, app_private.webhook_body(e)::jsonb as body from app_public.events e where e.id = any ($1) and e.changes is not null",
        [visible.map(([id]) => id as string)],
      );
      for (const { column, id, table, marker } of secrets) {
        const member = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
        for (const { body } of bodies.filter((event) => event.id === id)) {
          checked += 1;
          // A field may return less than the value, such as the month of a date.
          const isRevealed =
            marker === null ? body.data[member] !== null : JSON.stringify(body).includes(marker);
          if (isRevealed || body.changes[member] !== undefined)
            revealed.push(`${viewer.name}: ${table}.${column}`);
        }
      }
    });
  expect(checked).toBeGreaterThan(200);
  expect([...new Set(revealed)]).toEqual([]);
});

test("filters and searches do not reveal values that the field hides", async () => {
  const { client } = world;
  const { rows: filters } = await client.query<{
    table: string;
    /** The call before the value, with the row t of the masking view. */
    call: string;
    filter: string;
    finder: string | null;
    range: string | null;
  }>(`
    select c.oid::regclass::text as table, p.oid::regproc::text as filter, format('%s(row(%s)::%s, ', p.oid::regproc, app_hidden.row_columns(c.oid, 't',
        string_to_array((regexp_match(obj_description(p.oid), '(?:^|\\n)@reads ([^\\n]*)'))[1], ' ')), c.oid::regclass) as call, (regexp_match(obj_description(p.oid), '@finder (\\w+)'))[1] as finder,
      case when a.typtype = 'r' then p.proargtypes[1]::regtype::text end as range
    from pg_proc p join pg_class c on c.reltype = p.proargtypes[0] join pg_type a on a.oid = p.proargtypes[1]
    where p.pronamespace = 'app_public'::regnamespace and p.pronargs = 2 and obj_description(p.oid) ~ '(^|\\n)@filter'
      and (a.typtype = 'r' or p.proargtypes[1] = 'text'::regtype)`);
  expect(filters.length).toBeGreaterThan(5);
  const revealed: string[] = [];
  for (const viewer of viewers)
    await as(viewer, async (read) => {
      for (const { table, column, id, marker, value, category } of await hiddenFrom(viewer, read))
        for (const { filter, call, finder, range } of filters.filter(
          (one) => one.table === table && marker !== null,
        )) {
          if (range === null ? category !== "S" : category !== "N" && category !== "D") continue;
          const isOf = range === null || (category === "D") === /date|ts/.test(range);
          if (!isOf) continue;
          const argument = range === null ? "$2::text" : `${range}('[' || $2 || ',' || $2 || ']')`;
          const rows = await read(
            `select from ${viewOf(table)} t where t.id = $1 and ${call}${argument})
             ${finder ? `union all select from app_hidden.${finder}(${argument}) i where i = $1` : ""}`,
            [id, range === null ? marker : String(value)],
          );
          if (rows.length > 0) revealed.push(`${viewer.name}: ${table}.${column} by ${filter}`);
        }
    });
  expect([...new Set(revealed)]).toEqual([]);
  const { rows: words } = await client.query<{ text: string }>(
    "select concat(names, more) as text from app_private.search_texts",
  );
  const found = planted.filter(
    ({ marker, category }) =>
      marker !== null && category === "S" && words.some(({ text }) => text.includes(marker.toLowerCase())),
  );
  expect(found).toEqual([]);
});

test("the API cannot filter, sort or group by masked fields, and aggregates what the fields return", async () => {
  const schema = buildSchema(await readFile(join(import.meta.dirname, "../../schema.graphql"), "utf8"), {
    assumeValid: true,
  });
  const { rows: filters } = await world.client.query<{ table: string; name: string }>(`
    select c.oid::regclass::text as table, (regexp_match(obj_description(p.oid), '(?:^|\\n)@filter (\\w+)'))[1] as name
    from pg_proc p join pg_class c on c.reltype = p.proargtypes[0] where obj_description(p.oid) ~ '(^|\\n)@filter '`);
  const offered: string[] = [];
  const sums = new Map<string, { figure: string; member: string }[]>();
  for (const { table, column } of columns) {
    const plural = table
      .replace("app_public.", "")
      .replace(/(^|_)(\w)/g, (_, __, letter: string) => letter.toUpperCase());
    const singular = plural.replace(/ies$/, "y").replace(/s$/, "");
    const member = column.replace(/_(\w)/g, (_, letter: string) => letter.toUpperCase());
    const constant = new RegExp(`^${column.toUpperCase()}(_ASC|_DESC|_TRUNCATED_TO_.*)?$`);
    for (const type of Object.values(schema.getTypeMap())) {
      const [, kind] =
        new RegExp(`^(?:${singular}|${plural})(Filter|OrderBy|Sort|GroupBy|\\w*Aggregates)$`).exec(
          type.name,
        ) ?? [];
      if (!kind) continue;
      if (isEnumType(type) && type.getValues().some(({ name }) => constant.test(name)))
        offered.push(`${type.name} ${constant.source}`);
      else if (isInputObjectType(type) && type.getFields()[member]) {
        if (!filters.some((filter) => filter.table === table && filter.name === member))
          offered.push(`${type.name}.${member}`);
      } else if (isObjectType(type) && type.getFields()[member] && kind.length > "Aggregates".length) {
        const list = Object.values(schema.getQueryType()!.getFields()).find(
          ({ type: result }) => String(result).replace("!", "") === `${singular}Connection`,
        );
        const figure = kind.charAt(0).toLowerCase() + kind.slice(1, -"Aggregates".length);
        if (list) sums.set(list.name, [...(sums.get(list.name) ?? []), { figure, member }]);
      }
    }
  }
  expect(offered).toEqual([]);
  expect(sums.size).toBeGreaterThan(1);
  const api = await startApi(world.database);
  try {
    const { login } = await api.anonymous.get(
      `mutation { login(input: { username: "${demoUser.email}", password: "${demoUser.password}" }) { token } }`,
    );
    const { texts } = await api.statements(async () => {
      for (const [list, members] of sums)
        await api
          .person(login.token)
          .get(
            `{ ${list} { aggregates { ${members.map(({ figure, member }) => `${figure} { ${member} }`).join(" ")} } } }`,
          );
    });
    const read = texts.join("\n");
    for (const [list, members] of sums)
      for (const { table, column } of columns.filter(({ column: name }) =>
        members.some(({ member }) => member.toLowerCase() === name.replaceAll("_", "")),
      )) {
        if (!list.toLowerCase().startsWith(table.replace("app_public.", "").replaceAll("_", ""))) continue;
        const name = table.replace("app_public.", "");
        expect([list, column, read.includes(`"masked_${name}"`)]).toEqual([list, column, true]);
        expect([list, column, read.includes(`"app_public"."${name}"`)]).toEqual([list, column, false]);
      }
  } finally {
    await api.stop();
  }
});

/** All SQL constructs that reveal a value, for a table t and its column c. */
const forms = (t: string, c: string): Record<string, string> => ({
  column: `select ${c} from ${t}`,
  "column of an alias": `select x.${c} from ${t} x`,
  "all columns": `select * from ${t}`,
  row: `select x from ${t} x`,
  "member of a row": `select (x).${c} from ${t} x`,
  "row as JSON": `select to_jsonb(x) from ${t} x`,
  "row as text": `select x::text from ${t} x`,
  table: `table ${t}`,
  function: `select app_hidden.masked(x) from ${t} x`,
  condition: `select id from ${t} where ${c} is not null`,
  "condition of a row": `select id from ${t} x where x is not null`,
  order: `select id from ${t} order by ${c}`,
  group: `select count(*) from ${t} group by ${c}`,
  distinct: `select count(distinct ${c}) from ${t}`,
  aggregate: `select max(${c}::text) from ${t}`,
  having: `select 1 from ${t} having count(${c}) > 0`,
  window: `select rank() over (order by ${c}) from ${t}`,
  "sub-select": `select (select ${c} from ${t} limit 1)`,
  "correlated sub-select": `select 1 where exists (select from ${t} x where x.${c}::text = 'a')`,
  join: `select 1 from ${t} a join ${t} b using (${c})`,
  lateral: `select y from ${t} x, lateral (select x.${c}) y`,
  "set operation": `select ${c}::text from ${t} union select 'a'`,
  "common table expression": `with x as (select ${c} from ${t}) select 1 from x`,
  cursor: `declare reading cursor for select ${c} from ${t}`,
  "copy of a column": `copy ${t} (${c}) to stdout`,
  "copy of a query": `copy (select ${c} from ${t}) to stdout`,
  explain: `explain analyze select ${c} from ${t}`,
  "returning of an update": `update ${t} set id = id where false returning ${c}`,
  "condition of an update": `update ${t} set id = id where ${c} is not null`,
  "value of an update": `update ${t} set id = case when ${c} is null then id else id end`,
  "from of an update": `update app_public.leads l set id = l.id from ${t} x where x.${c}::text = l.name`,
  "condition of a delete": `delete from ${t} where ${c} is not null`,
  "returning of a delete": `delete from ${t} where false returning ${c}`,
  "returning of an insert": `insert into ${t} default values returning ${c}`,
  "returning of whole rows": `insert into ${t} default values returning *`,
  "insert of a select": `insert into app_public.leads (name) select ${c}::text from ${t}`,
  conflict: `insert into ${t} as x (id) values (uuidv7()) on conflict (id) do update set id = x.id where x.${c} is not null`,
  merge: `merge into ${t} x using (select 1 as n) s on x.${c} is not null when matched then do nothing`,
  lock: `select ${c} from ${t} for update`,
  sample: `select ${c} from ${t} tablesample system (100)`,
  statistics: `select 1 / (select count(*) from pg_stats where schemaname || '.' || tablename = '${t}' and attname = '${c}')`,
});

test("SQL as a role of the API cannot read a masked column in any form", async () => {
  const { client } = world;
  const { rows } = await client.query<{ table: string; column: string; written: boolean }>(
    `select c.oid::regclass::text as table, a.attname as column, has_column_privilege('plat_user', c.oid, a.attnum, 'update') as written
     from unnest($1::regclass[]) t join pg_class c on c.oid = t join unnest(app_hidden.masked_columns(t)) m on true
     join pg_attribute a on a.attrelid = c.oid and a.attname = m order by 1, 2`,
    [maskedTables],
  );
  expect(rows.length).toBe(columns.length + 2);
  const allowed: string[] = [];
  for (const role of ["plat_user", "plat_anonymous", "plat_authenticator"])
    for (const { table, column, written } of rows) {
      await client.query("begin");
      await client.query("select set_config('plat.user_id', $1, true)", [world.stranger]);
      await client.query(`set local role ${role}; savepoint form`);
      const refusals: Record<string, string> = {
        ...forms(table, column),
        // Permission to write a column does not permit reading it.
        ...(written
          ? {
              "returning of a write": `update ${table} set ${column} = null where false returning ${column}`,
              "value of itself": `update ${table} set ${column} = ${column}`,
            }
          : {}),
      };
      for (const [form, sql] of Object.entries(refusals)) {
        const code = await client.query(`rollback to form; ${sql}`).then(
          () => "nothing",
          (error: { code?: string }) => error.code,
        );
        // Statistics are not refused, but empty.
        if (code !== (form === "statistics" ? "22012" : "42501"))
          allowed.push(`${role}: ${form} of ${table}.${column}: ${code}`);
      }
      await client.query("rollback");
    }
  expect(allowed).toEqual([]);
});

test("a masking view has the visible rows of its table, with the results of the functions", async () => {
  const differences: string[] = [];
  let compared = 0;
  const { rows: masked } = await world.client.query<{ table: string; names: string[] }>(
    "select t as table, app_hidden.masked_columns(t::regclass)::text[] as names from unnest($1::text[]) t",
    [maskedTables],
  );
  for (const viewer of viewers)
    await as(viewer, async (read) => {
      for (const { table, names } of masked) {
        const fields = (expression: (name: string) => string) =>
          `select t.id, jsonb_build_array(${names.map(expression).join(", ")})::text`;
        const seen = await read(`${fields((name) => `t.${name}`)} from ${viewOf(table)} t order by t.id`);
        const ids = await read(`select id from ${table} order by id`);
        if (seen.map(([id]) => id as string).join() !== ids.map(([id]) => id as string).join())
          differences.push(`${viewer.name}: ${seen.length} rows for ${ids.length} of ${table}`);
        const given = new Map(
          (await unguarded(
            `${fields((name) => `${table}_${name}(t)`)} from ${table} t where t.id = any ($1)`,
            [seen.map(([id]) => id as string)],
          )) as [string, string][],
        );
        for (const [id, shown] of seen) {
          compared += 1;
          if (given.get(id) !== shown)
            differences.push(`${viewer.name}: ${shown} for ${given.get(id)} in ${table}`);
        }
      }
    });
  expect(compared).toBeGreaterThan(1000);
  expect(differences).toEqual([]);
});

test("non-null relations of a visible record are visible", async () => {
  const { rows: relations } = await world.client.query<{ name: string; text: string }>(
    `select k.conrelid::regclass || '.' || a.attname as name,
       format('select t.id, exists (select from %s o where o.id = t.%I) from %s t',
         app_hidden.source_of(k.confrelid), a.attname, app_hidden.source_of(k.conrelid)) as text
     from pg_constraint k join pg_attribute a on a.attrelid = k.conrelid and a.attnum = k.conkey[1]
     where k.contype = 'f' and obj_description(k.oid, 'pg_constraint') ~ '(^|\\n)@notNull(\\n|$)' order by 1`,
  );
  expect(relations.length).toBeGreaterThan(14);
  const seen = new Set<string>();
  for (const viewer of viewers)
    await as(viewer, async (read) => {
      for (const { name, text } of relations) {
        const rows = await read(text);
        expect([viewer.name, name, rows.filter(([, isSeen]) => !isSeen)]).toEqual([viewer.name, name, []]);
        if (rows.length > 0) seen.add(name);
      }
    });
  expect(relations.filter(({ name }) => !seen.has(name))).toEqual([]);
});
