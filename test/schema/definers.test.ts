/**
 * Security definer functions, called by a user without a role, by a visitor and by restricted tokens, with ids and
 * rows of another organization, and with rows that do not exist. Generated from the catalog: no function returns,
 * changes or locks anything of the other organization. Functions that only the API's login may execute are called
 * after a check of the viewer; each that relies on an id alone documents that check by `@step`.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { randomUUID } from "node:crypto";
import { escapeLiteral, type QueryResult } from "pg";
import { startTwoOrganizations, valueOf, type TwoOrganizations } from "../harness/twoOrganizations.ts";

interface Definer {
  /** As used in a call. */
  name: string;
  signature: string;
  arguments: { name: string; type: string; kind: string; element: string | null; relation: string | null }[];
  comment: string;
  source: string;
  /** The roles of the API that may execute it. */
  callers: string[];
}

interface Caller {
  name: string;
  role: string;
  settings: Record<string, string>;
  /** Whether it is a user of the other organization, who may read some rows but change none. */
  isTheirs?: boolean;
}

/** The result of a call, or the refusal as its caller reads it. */
interface Outcome {
  answer: string;
  /** Rows of the other organization that the call wrote or locked, by table. */
  touched: string[];
}

let world: TwoOrganizations;
let definers: Definer[];
/** Functions that only the login of the API may execute. */
let steps: Definer[];
let callers: Caller[];
/** A nonexistent id for each id of the other organization. */
const nobodys = new Map<string, string>();
const known = new Map<string, string | null>();
/** By table, a query of its rows that a transaction wrote or locked. */
const touchedQueries = new Map<string, string>();

/** Functions that some of the roles may execute, and none of the others. */
const definersQuery = `
  select p.oid::regproc::text as name, p.oid::regprocedure::text as signature, coalesce(obj_description(p.oid, 'pg_proc'), '') as comment,
    p.prosrc as source, array(select r from unnest($1::text[]) r where has_function_privilege(r, p.oid, 'execute')) as callers,
    coalesce((
      select jsonb_agg(jsonb_build_object('name', coalesce(p.proargnames[a.i::int], ''), 'type', format_type(t.oid, null), 'kind',
          case when t.typtype = 'c' or b.typtype = 'c' then 'row' when t.typtype = 'p' then 'any' when b.typcategory = 'A' then 'array'
            when b.typtype = 'r' then 'range' else b.typname::text end,
        'element', (select format_type(e.oid, null) from pg_type e where e.oid = b.typelem and b.typcategory = 'A'),
        'relation', (select c.oid::regclass::text from pg_class c where c.oid = b.typrelid)) order by a.i)
      from unnest(p.proargtypes) with ordinality a (type, i) join pg_type t on t.oid = a.type
      join pg_type b on b.oid = coalesce(nullif(t.typbasetype, 0), t.oid)), '[]') as arguments
  from pg_proc p
  where p.prosecdef and p.pronamespace in ('app_public'::regnamespace, 'app_hidden'::regnamespace, 'app_private'::regnamespace)
    and p.prorettype <> 'trigger'::regtype
    and exists (select from unnest($1::text[]) r where has_function_privilege(r, p.oid, 'execute'))
    and not exists (select from unnest($2::text[]) r where has_function_privilege(r, p.oid, 'execute'))
  order by 2`;

/** PERF: the function that a mutation test has changed is the only one to be called. */
const mutated = /^create or replace function ([\w.]+)\(/i.exec(process.env.PLAT_TEST_MUTANT ?? "")?.[1];
const isMutated = ({ name }: { name: string }) => name === mutated;
/** How many calls show that the test still finds the functions. */
const atLeast = (amount: number) => (mutated ? 0 : amount);

const first = (house: TwoOrganizations["theirs"], table: string): string | undefined => house.get(table)?.[0];

beforeAll(async () => {
  world = await startTwoOrganizations();
  const { client } = world;
  const viewers = ["plat_user", "plat_anonymous"];
  ({ rows: definers } = await client.query<Definer>(definersQuery, [viewers, []]));
  ({ rows: steps } = await client.query<Definer>(definersQuery, [["plat_authenticator"], viewers]));
  if (mutated) [definers, steps] = [definers.filter(isMutated), steps.filter(isMutated)];
  // Public data are excluded.
  await client.query(`begin; set local session_replication_role = replica;
    update app_public.projects set visibility = 'PRIVATE'; update app_public.organizations set has_public_project = false; commit`);
  const { rows: owners } = await client.query<{ id: string }>(
    "select user_id as id from app_public.organization_user_connections where organization_id = $1 and role = 'OWNER'",
    [world.organizations.theirs],
  );
  const token = (user: string, scope: string) => ({ user_id: user, token_id: randomUUID(), scopes: scope });
  callers = [
    { name: "a visitor", role: "plat_anonymous", settings: {} },
    { name: "a stranger", role: "plat_user", settings: { user_id: world.stranger } },
    { name: "a stranger's token", role: "plat_user", settings: token(world.stranger, "report.read") },
    {
      name: "a token of their owner that only reads",
      role: "plat_user",
      settings: token(owners[0]!.id, "marketing.read"),
      isTheirs: true,
    },
  ];
  for (const [, ids] of world.theirs) for (const id of ids) nobodys.set(id, randomUUID());
  const { rows } = await client.query<{ name: string }>(
    `select c.oid::regclass::text as name from pg_class c where c.relkind in ('r', 'p') and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')
       and c.relname not like '%\\_values'`,
  );
  for (const { name } of rows)
    touchedQueries.set(
      name,
      `select '${name}' as name, t::text as row, t.xmin::text::bigint >= $1 as is_written from ${name} t
       where t.xmin::text::bigint >= $1 or t.xmax::text::bigint >= $1`,
    );
});
afterAll(() => world?.end());

/** The table that an argument's name refers to; null if it is any id. */
function tableOf(name: string): string | null {
  const subject = name.replace(/_ids?$/, "");
  if (subject === name) return null;
  const plain = {
    purchase: "buyers",
    customer: "users",
    member: "organization_user_connections",
    assignee: "users",
    execution: "workflow_executions",
  }[subject];
  const column = world.tables
    .flatMap(({ columns }) => columns)
    .find((one) => one.name === name && one.refersTo);
  const table = plain ? `app_public.${plain}` : (column?.refersTo ?? `app_public.${subject}s`);
  return world.theirs.has(table) ? table : null;
}

/** Ids of the other organization for an argument, and ours of the same type. */
function idsFor(name: string): { theirs: string[]; ours: string[] } {
  const table = tableOf(name);
  const tables = table ? [table] : [...world.theirs.keys()];
  return {
    theirs: tables.flatMap((one) =>
      table ? world.theirs.get(one)!.slice(0, 2) : world.theirs.get(one)!.slice(0, 1),
    ),
    ours: table ? tables.flatMap((one) => world.ours.get(one)!) : [],
  };
}

async function rowOf(table: string, id: string): Promise<Record<string, unknown>> {
  const { rows } = await world.client.query<{ row: Record<string, unknown> }>(
    `select to_jsonb(t) as row from ${table} t where id = $1`,
    [id],
  );
  return rows[0]!.row;
}

/** Their row unchanged, their row with our organization, and our row with theirs. */
async function rowsFor(relation: string): Promise<Record<string, unknown>[]> {
  if (!world.theirs.has(relation)) return [{}];
  const rows: Record<string, unknown>[] = [];
  for (const id of world.theirs.get(relation)!.slice(0, 3)) {
    const theirs = await rowOf(relation, id);
    const claimed = { ...theirs };
    for (const name of [
      "organization_id",
      "owner_id",
      "user_id",
      "assignee_id",
      "created_by_id",
      "uploaded_by_id",
    ])
      if (name in claimed)
        claimed[name] = /organization|owner/.test(name) ? world.organizations.ours : world.stranger;
    rows.push(theirs, claimed, {
      ...claimed,
      ...("project_id" in claimed ? { project_id: first(world.ours, "app_public.projects") } : {}),
    });
  }
  const theirs = await rowOf(relation, first(world.theirs, relation)!);
  const ours = await rowOf(relation, first(world.ours, relation)!);
  rows.push(
    { ...theirs, id: ours.id },
    { ...theirs, id: ours.id, organization_id: world.organizations.ours },
  );
  return rows;
}

/** Inputs with the fields that the source of a function reads. */
async function inputsFor(source: string): Promise<Record<string, unknown>[]> {
  const names = [...source.matchAll(/->>?\s*'(\w+)'/g)].map(([, name]) => name!);
  const given: Record<string, unknown> = {};
  for (const name of new Set([...names, "id"])) {
    const snake = name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`);
    if (/(^|_)ids?$/.test(snake) && snake !== "id") given[name] = idsFor(snake).theirs[0];
  }
  const ids = /->>?\s*'id'/.test(source) ? idsFor("id").theirs : [undefined];
  return [{}, ...ids.map((id) => (id ? { ...given, id } : given))];
}

/** Values for an argument, as text; for ids, theirs first. */
async function valuesFor(
  definer: Definer,
  { name, type, kind, element, relation }: Definer["arguments"][number],
): Promise<(string | null)[]> {
  if (kind === "any") return [null];
  const isId = /(^|_)ids?$/.test(name) || kind === "uuid" || element === "uuid";
  if (kind === "array") return isId ? idsFor(name).theirs.map((id) => `{${id}}`) : ["{}", null];
  if (kind === "row") {
    if (relation?.startsWith("app_public.") && world.theirs.has(relation))
      return (await rowsFor(relation)).map((row) => JSON.stringify(row));
    return ["{}", null];
  }
  if (isId) {
    const { theirs, ours } = idsFor(name);
    return [...theirs, ...ours, null];
  }
  if (kind === "jsonb") return (await inputsFor(definer.source)).map((input) => JSON.stringify(input));
  if (kind === "range") return ["(,)"];
  if (kind === "bool") return ["true", "false"];
  if (kind === "bytea") return ["\\x00"];
  if (name === "of_scope") return ["ORGANIZATION", "USER"];
  if (name === "permission") return ["org.member", "project.read", "lead.read", "sale.read"];
  if (/^(int|float|numeric)/.test(kind)) return ["1"];
  return [await valueOf(world.client, type, known), null];
}

/**
 * Maximum number of calls of one function: all values of the first argument, and of further ones as far as
 * possible.
 */
const mostCalls = 60;

async function callsOf(definer: Definer, most = mostCalls): Promise<(string | null)[][]> {
  let calls: (string | null)[][] = [[]];
  for (const argument of definer.arguments) {
    const all = await valuesFor(definer, argument);
    const room = Math.max(1, Math.floor(most / calls.length));
    const given =
      all.length <= room ? all : [...all.slice(0, Math.max(1, room - 1)), ...(room > 1 ? all.slice(-1) : [])];
    calls = calls.flatMap((before) => given.map((value) => [...before, value]));
  }
  return calls;
}

function sqlOf(definer: Definer, anyType: string, values: (string | null)[]): string {
  const given = definer.arguments.map(({ type, kind, relation }, i) => {
    const value = values[i] == null ? "null::text" : `${escapeLiteral(values[i])}::text`;
    if (kind === "any") return `null::${anyType}`;
    return kind === "row" && relation
      ? `jsonb_populate_record(null::${relation}, ${value}::jsonb)::${type}`
      : `${value}::${type}`;
  });
  return `select coalesce(jsonb_agg(to_jsonb(r)), '[]')::text as answer from ${definer.name}(${given.join(", ")}) r`;
}

/**
 * PERF: a statement that writes or locks rows holds a stronger lock on the table than a read; a query of all
 * tables would take longer than the call.
 */
const lockedTables = `select distinct l.relation::regclass::text as name from pg_locks l
  where l.pid = pg_backend_pid() and l.locktype = 'relation' and l.mode <> 'AccessShareLock'`;

/** PERF: all statements in one message, because the others take longer than most calls. */
async function call(caller: Caller, sql: string): Promise<Outcome> {
  const { client } = world;
  const settings = Object.entries(caller.settings).map(
    ([name, value]) => `set local plat.${name} = '${value}';`,
  );
  let results: QueryResult[];
  try {
    // A call that writes or locks nothing gets no transaction id.
    results = (await client.query(
      `rollback; begin; ${settings.join(" ")} set local statement_timeout = 5000; set local role ${caller.role};
       ${sql}; reset role; select pg_current_xact_id_if_assigned()::text as id`,
    )) as unknown as QueryResult[];
  } catch (error) {
    const { code, message, detail } = error as { code: string; message: string; detail?: string };
    return { answer: `${code}: ${message} ${code === "PLAT0" ? detail : ""}`, touched: [] };
  }
  const { answer } = results.at(-3)!.rows[0] as { answer: string };
  const { id } = results.at(-1)!.rows[0] as { id: string | null };
  if (!id) return { answer, touched: [] };
  const { rows: locked } = await client.query<{ name: string }>(lockedTables);
  const queries = locked.flatMap(({ name }) => touchedQueries.get(name) ?? []);
  if (queries.length === 0) return { answer, touched: [] };
  const { rows } = await client.query<{ name: string; row: string; is_written: boolean }>(
    queries.join(" union all "),
    [id],
  );
  const touched = rows.filter(({ row }) => isTheirs(row));
  // Rows of the viewer's own account may be written, and lock the rows that they refer to.
  const foreign = caller.isTheirs
    ? touched.filter(
        ({ name, row, is_written: written }) =>
          written && !row.includes(caller.settings.user_id!) && !name.startsWith("app_private."),
      )
    : touched;
  return { answer, touched: foreign.map(({ name }) => name) };
}

const uuids = /[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}/g;

/**
 * Effects of an invitation to a project on the invited organization, whose slug is public: an event in its
 * stream, and the weakest lock on the referenced row.
 */
const reaching: Record<string, readonly string[]> = {
  "app_public.create_project_organization": ["app_private.event_batches", "app_public.organizations"],
};

/** Whether a text contains an id of theirs; a row with our organization may refer to one. */
function isTheirs(text: string): boolean {
  return (
    !text.includes(world.organizations.ours) && [...text.matchAll(uuids)].some(([id]) => nobodys.has(id))
  );
}

/** Nonexistent ids, one for each position of an argument. */
const nothings = Array.from({ length: 20 }, () => randomUUID());

/**
 * Replaces their ids by nonexistent ones. PERF: any id of theirs as an argument is replaced by the same one,
 * so that calls that only differ by it are executed once.
 */
function forget(values: readonly (string | null)[]): (text: string | null) => string | null {
  const ofPlaces = new Map(values.flatMap((id, i) => (id && nobodys.has(id) ? [[id, nothings[i]!]] : [])));
  return (text) => text?.replaceAll(uuids, (id) => ofPlaces.get(id) ?? nobodys.get(id) ?? id) ?? null;
}

/** Executes each distinct call once, and caches its outcome. */
function remembering(): typeof call {
  const made = new Map<string, Promise<Outcome>>();
  return (caller, sql) => {
    const key = `${caller.name} ${sql}`;
    const outcome = made.get(key) ?? call(caller, sql);
    made.set(key, outcome);
    return outcome;
  };
}

test("no call returns, changes or locks records of others", async () => {
  const faults = new Map<string, string>();
  /** Declared exceptions that return something for an id of theirs. */
  const telling = new Set<string>();
  const note = (definer: Definer, caller: Caller, what: string, more = "") =>
    faults.set(`${definer.signature}: ${caller.name} ${what}`, more);
  let made = 0;
  for (const definer of definers) {
    const isDeclared = /(^|\n)@withoutViewer \S/.test(definer.comment);
    const anyTypes = definer.arguments.some(({ kind }) => kind === "any")
      ? [...world.theirs.keys()]
      : ["void"];
    await world.client.query("rollback");
    const calls = await callsOf(definer);
    const callNothing = remembering();
    for (const caller of callers.filter(({ role }) => definer.callers.includes(role)))
      for (const type of anyTypes)
        for (const values of calls) {
          made += 1;
          const outcome = await call(caller, sqlOf(definer, type, values));
          const touched = outcome.touched.filter((name) => !reaching[definer.name]?.includes(name));
          if (touched.length > 0) note(definer, caller, `touches ${[...new Set(touched)].join(", ")}`);
          if (caller.isTheirs || telling.has(definer.name)) continue;
          const forgotten = forget(values);
          const others = values.map(forgotten);
          if (values.every((value, i) => value === others[i])) {
            if (!isDeclared && isTheirs(outcome.answer))
              note(definer, caller, "is given ids", outcome.answer.slice(0, 300));
            continue;
          }
          // The same result as for nonexistent records.
          const { answer } = await callNothing(caller, sqlOf(definer, type, others));
          if (forgotten(outcome.answer) === answer) continue;
          if (isDeclared) telling.add(definer.name);
          else
            note(
              definer,
              caller,
              "learns",
              `${outcome.answer.slice(0, 300)} rather than ${answer.slice(0, 300)} by ${JSON.stringify(values).slice(0, 300)}`,
            );
        }
  }
  await world.client.query("rollback");
  expect(made).toBeGreaterThanOrEqual(atLeast(5000));
  expect(Object.fromEntries(faults)).toEqual({});
  // Exceptions for a viewer with SQL access as a role of the API who knows the id: units for sale in a
  // project that is not public. Review the reason of any further exception here. The type of a record reveals
  // nothing, and node() responds as if the record did not exist.
  expect([...telling].sort()).toEqual(
    [
      ...["highest_price", "lowest_price", "offers_bedrooms", "offers_price", "node_tables"].map(
        (name) => `app_hidden.${name}`,
      ),
      "app_public.create_project_organization",
    ]
      .filter((name) => !mutated || isMutated({ name }))
      .sort(),
  );
}, 300_000);

test("without a proof, a step of the service changes nothing of theirs, and accepts any input", async () => {
  const service: Caller = { name: "the login of the API", role: "plat_authenticator", settings: {} };
  const faults = new Map<string, string>();
  let made = 0;
  for (const step of steps) {
    const isDeclared = /(^|\n)@step \S/.test(step.comment);
    const callNothing = remembering();
    await world.client.query("rollback");
    for (const values of await callsOf(step, 120)) {
      made += 1;
      const outcome = await call(service, sqlOf(step, "void", values));
      const forgotten = forget(values);
      const others = await callNothing(service, sqlOf(step, "void", values.map(forgotten)));
      const inputs = JSON.stringify(values).slice(0, 200);
      // Invalid values are refused by their type, a constraint or a code, an invalid token by PLAT2; any
      // other error is a fault of the function.
      for (const { answer } of [outcome, others])
        if (/^[0-9A-Z]{5}: /.test(answer) && !/^(PLAT0|PLAT2|22|23)/.test(answer))
          faults.set(`${step.signature} fails`, `${answer.slice(0, 200)} by ${inputs}`);
      if (isDeclared) continue;
      if (outcome.touched.length > 0)
        faults.set(`${step.signature} touches ${[...new Set(outcome.touched)].join(", ")}`, inputs);
      if (forgotten(outcome.answer) !== others.answer)
        faults.set(
          `${step.signature} learns`,
          `${outcome.answer.slice(0, 200)} rather than ${others.answer.slice(0, 200)} by ${inputs}`,
        );
    }
  }
  await world.client.query("rollback");
  expect(steps.length).toBeGreaterThanOrEqual(atLeast(20));
  expect(made).toBeGreaterThanOrEqual(atLeast(200));
  expect(Object.fromEntries(faults)).toEqual({});
}, 300_000);

test("functions that evaluate policies agree with them", async () => {
  const { client } = world;
  const { rows: kinds } = await client.query<{ subject: string; relation: string }>(
    "select subject, format('app_public.%I', table_name) as relation from app_hidden.record_types where to_regclass(format('app_public.%I', table_name)) is not null order by 1",
  );
  const { rows: members } = await client.query<{ id: string }>(
    "select user_id as id from app_public.organization_user_connections where organization_id = any ($1)",
    [Object.values(world.organizations)],
  );
  const viewers = [...members.map(({ id }) => id), world.stranger];
  const say = (sees: string, subject: string, relation: string) =>
    client.query<{ id: string }>(`select id from ${relation} where ${sees}($1, id) order by id limit 200`, [
      subject,
    ]);
  const different: string[] = [];
  const inPolicy = new Set(["lead"]);
  let [seen, branches] = [0, 0];
  for (const viewer of viewers) {
    await client.query("rollback; begin");
    await client.query("select set_config('plat.user_id', $1, true)", [viewer]);
    for (const { subject, relation } of kinds) {
      const answers = await say("app_private.viewer_sees_subject", subject, relation);
      await client.query("savepoint owner; set local role plat_user");
      const policies = await say("app_hidden.sees_subject", subject, relation);
      // The checks of the events policy agree for the events of those records.
      if (inPolicy.has(subject)) {
        const { rows } = await client.query(
          `select e.id, app_hidden.sees_subject(e.subject_type, e.subject_id) as sees from app_public.events e where e.subject_type = $1
             and e.organization_id <> all (app_hidden.viewer_organizations('audit.read'))`,
          [subject],
        );
        branches += rows.length;
        different.push(...rows.filter(({ sees }) => !sees).map(({ id }) => `event ${id} ${viewer}`));
      }
      await client.query("rollback to owner");
      seen += policies.rows.length;
      if (JSON.stringify(answers.rows) !== JSON.stringify(policies.rows))
        different.push(`${subject} ${viewer}`);
    }
  }
  await client.query("rollback");
  expect(kinds.length).toBeGreaterThan(40);
  expect(branches).toBeGreaterThan(5);
  expect(seen).toBeGreaterThan(500);
  expect(different).toEqual([]);
});

test("a read-only token cannot write a row of any table", async () => {
  const { client } = world;
  const { rows: tables } = await client.query<{
    name: string;
    column: string | null;
    insert: string | null;
    can_delete: boolean;
  }>(`
    select c.oid::regclass::text as name, has_table_privilege('plat_user', c.oid, 'delete') as can_delete,
      (select a.attname from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and has_column_privilege('plat_user', c.oid, a.attnum, 'update') order by a.attnum limit 1) as column,
      (select string_agg(quote_ident(a.attname), ', ') from pg_attribute a where a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
        and has_column_privilege('plat_user', c.oid, a.attnum, 'insert')) as insert
    from pg_class c where c.relkind in ('r', 'p') and c.relnamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')`);
  const { rows: permissions } = await client.query<{ permission: string }>(
    "select distinct permission from app_private.role_permissions where permission like '%.read' order by 1",
  );
  const writable = tables.filter((table) => table.column ?? table.insert ?? table.can_delete);
  expect(writable.length).toBeGreaterThan(40);
  const { settings } = callers.find(({ isTheirs: theirs }) => theirs)!;
  const written: string[] = [];
  for (const { permission } of permissions) {
    const all = Object.entries({ ...settings, scopes: permission }).map(
      ([name, value]) => `set local plat.${name} = '${value}';`,
    );
    await client.query(`rollback; begin; ${all.join(" ")} set local role plat_user; savepoint attempt`);
    for (const { name, column, insert, can_delete: canDelete } of writable) {
      const statements = [
        ...(column ? [`update ${name} set "${column}" = "${column}"`] : []),
        ...(canDelete ? [`delete from ${name}`] : []),
        ...(insert ? [`insert into ${name} (${insert}) select ${insert} from ${name} limit 1`] : []),
      ];
      for (const statement of statements) {
        try {
          const results = await client.query(`rollback to attempt; ${statement}`);
          const { rowCount } = (results as unknown as QueryResult[]).at(-1)!;
          if (rowCount) written.push(`${permission}: ${statement.slice(0, 80)}`);
        } catch {
          // Refused.
        }
      }
    }
  }
  await client.query("rollback");
  expect(written).toEqual([]);
});
