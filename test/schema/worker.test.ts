/**
 * Database permissions of background work: running jobs, and executing the functions that its own code calls, so that
 * an injected statement can do no more. Generated from the catalog, and executed with its role.
 */
import { afterAll, beforeAll, expect, test } from "@jest/globals";
import { Client, type DatabaseError, Pool } from "pg";
import { workerSources } from "../../src/checks/sources.ts";
import { onConnection } from "../../src/database/onConnection.ts";
import { requireLimited } from "../../src/database/roles.ts";
import { createTestDatabase, type TestDatabase } from "../harness/database.ts";

let database: TestDatabase;
let owner: Pool;
let worker: Client;

beforeAll(async () => {
  database = await createTestDatabase();
  owner = new Pool({ connectionString: database.ownerUrl, max: 1 });
  worker = new Client({ connectionString: database.workerUrl });
  await worker.connect();
});
afterAll(async () => {
  await worker.end();
  await owner.end();
  await database.drop();
});

test("the id of a worker's connection is above all process ids, which former releases used instead", async () => {
  // The maximum configurable process id.
  const mostProcesses = 2 ** 22;
  const { rows } = await worker.query("select app_private.connection_begins(null) as id");
  expect(rows[0].id).toBeGreaterThan(mostProcesses);
  await worker.query("select app_private.connection_ends($1)", [rows[0].id]);
});

test("jobs and deaths recorded before the clock was set back do not wait until that time comes again", async () => {
  await owner.query(`
    select graphile_worker.add_job('files__sweep', job_key => 'now');
    select graphile_worker.add_job('files__sweep', job_key => 'later', run_at => now() + interval '3 hours');
    select graphile_worker.add_job('files__sweep', job_key => 'untouched', run_at => now() + interval '5 hours');
    update graphile_worker._private_jobs set run_at = run_at + interval '2 hours', created_at = created_at + interval '2 hours',
      updated_at = updated_at + interval '2 hours' where key in ('now', 'later');
    insert into app_private.workers (id, gone_at) values ('dead', now() + interval '2 hours')`);
  expect((await worker.query("select app_private.follow_clock() as jobs")).rows).toEqual([{ jobs: 2 }]);
  expect((await worker.query("select app_private.follow_clock() as jobs")).rows).toEqual([{ jobs: 0 }]);
  const due =
    "select key || ' ' || round(extract(epoch from run_at - now()) / 3600) from graphile_worker._private_jobs where key is not null order by key";
  expect(await column(due)).toEqual(["later 3", "now 0", "untouched 5"]);
  await worker.query("select * from app_private.free_jobs_of_dead_workers(false)");
  expect(await column("select count(*) from app_private.workers where gone_at > now()")).toEqual(["0"]);
});

test("workers and connections that were noted as gone by mistake are known to live again", async () => {
  const { rows } = await worker.query("select app_private.connection_begins(null) as id");
  await worker.query("select app_private.worker_begins('reconnected')");
  const noteAsGone = (table: string, id: string) =>
    owner.query(`update app_private.${table} set gone_at = now() - interval '1 hour' where id::text = $1`, [
      id,
    ]);
  await noteAsGone("worker_connections", String(rows[0].id));
  await noteAsGone("workers", "reconnected");
  await worker.query("select app_private.note_gone_connections()");
  await worker.query("select * from app_private.free_jobs_of_dead_workers(false)");
  const gone = `select gone_at from app_private.workers where id = 'reconnected'
    union all select gone_at from app_private.worker_connections where id = ${rows[0].id}`;
  expect(await column(gone)).toEqual(["null", "null"]);
  // Once they are gone, they are noted again.
  await worker.query("select pg_advisory_unlock_all()");
  await worker.query("select app_private.note_gone_connections()");
  await worker.query("select * from app_private.free_jobs_of_dead_workers(false)");
  expect(await column(gone)).not.toContain("null");
  await worker.query("select app_private.worker_ends('reconnected'), app_private.connection_ends($1)", [
    rows[0].id,
  ]);
});

test("a job that is fetched while lost jobs are searched stays with its worker", async () => {
  await owner.query(
    "select graphile_worker.add_job('files__sweep', queue_name => 'sweeps', job_key => 'fetched')",
  );
  await worker.query("begin; select now()");
  // Fetched and committed after the search began, and before it reads the jobs.
  await owner.query(`
    update graphile_worker._private_job_queues set locked_by = 'living', locked_at = now() where queue_name = 'sweeps';
    update graphile_worker._private_jobs set locked_by = 'living', locked_at = now(), attempts = 1 where key = 'fetched'`);
  const { rows } = await worker.query("select app_private.free_lost_jobs('living', '{}') as amount");
  await worker.query("commit");
  expect(rows).toEqual([{ amount: 0 }]);
  const owners = `select j.locked_by || ' ' || q.locked_by from graphile_worker._private_jobs j
    join graphile_worker._private_job_queues q on q.id = j.job_queue_id where j.key = 'fetched'`;
  expect(await column(owners)).toEqual(["living living"]);
  // One that was fetched long ago and never started is released.
  await owner.query(`
    update graphile_worker._private_job_queues set locked_at = now() - interval '1 minute' where queue_name = 'sweeps';
    update graphile_worker._private_jobs set locked_at = now() - interval '1 minute' where key = 'fetched'`);
  expect((await worker.query("select app_private.free_lost_jobs('living', '{}') as amount")).rows).toEqual([
    { amount: 1 },
  ]);
  expect(
    await column("select locked_by from graphile_worker._private_job_queues where queue_name = 'sweeps'"),
  ).toEqual(["null"]);
});

/** The first column of each row, as the owner reads it. */
async function column(query: string): Promise<string[]> {
  const { rows } = await owner.query({ text: query, rowMode: "array" });
  return rows.map(([value]) => String(value));
}

/** The code of the refusal of a statement of background work; undefined if it succeeds, which is rolled back. */
async function refusal(text: string, values: unknown[] = []): Promise<string | undefined> {
  await worker.query("begin; set local statement_timeout = '20s'");
  try {
    await worker.query(text, values);
    return undefined;
  } catch (error) {
    return (error as DatabaseError).code;
  } finally {
    await worker.query("rollback");
  }
}

test("its role can only log in: it owns nothing, inherits nothing and creates nothing", async () => {
  const { rows } = await owner.query(`
    select rolcanlogin, rolsuper, rolinherit, rolcreaterole, rolcreatedb, rolreplication, rolbypassrls,
      (select count(*)::int from pg_auth_members m where m.member = r.oid) as memberships,
      (select count(*)::int from pg_shdepend d where d.refclassid = 'pg_authid'::regclass and d.refobjid = r.oid and d.deptype = 'o') as owned
    from pg_roles r where rolname = 'plat_worker'`);
  expect(rows).toEqual([
    {
      rolcanlogin: true,
      rolsuper: false,
      rolinherit: false,
      rolcreaterole: false,
      rolcreatedb: false,
      rolreplication: false,
      rolbypassrls: false,
      memberships: 0,
      owned: 0,
    },
  ]);
  expect(
    await column(`select nspname || ' ' || p from pg_namespace n, unnest(array['usage', 'create']) p
      where has_schema_privilege('plat_worker', n.oid, p) and nspname not like 'pg\\_%' and nspname <> 'information_schema' order by 1`),
  ).toEqual(["app_private usage", "graphile_worker usage", "public usage"]);
  expect(
    await column(
      `select p from unnest(array['create', 'temporary']) p where has_database_privilege('plat_worker', current_database(), p)`,
    ),
  ).toEqual([]);
});

test("its tables are those of the job runner, and the state of the payment sandbox", async () => {
  const { rows } = await owner.query<{ relation: string; privileges: string }>(`
    select c.oid::regclass::text as relation, string_agg(p, ' ' order by i) as privileges
    from pg_class c join pg_namespace n on n.oid = c.relnamespace,
      unnest(array['select', 'insert', 'update', 'delete', 'truncate', 'references', 'trigger', 'maintain', 'usage']) with ordinality u (p, i)
    where n.nspname not in ('pg_catalog', 'information_schema', 'pg_toast') and c.relkind in ('r', 'p', 'v', 'm', 'S', 'f')
      and case when c.relkind = 'S' then p in ('select', 'update', 'usage') and has_sequence_privilege('plat_worker', c.oid, p)
        when p in ('select', 'insert', 'update', 'references') then has_any_column_privilege('plat_worker', c.oid, p)
        when p <> 'usage' then has_table_privilege('plat_worker', c.oid, p) end
    group by 1 order by 1`);
  expect(Object.fromEntries(rows.map(({ relation, privileges }) => [relation, privileges]))).toEqual({
    "app_private.sandbox_objects": "select insert update delete",
    "app_private.sandbox_requests": "select insert",
    "graphile_worker._private_job_queues": "select insert update",
    "graphile_worker._private_jobs": "select insert update delete",
    "graphile_worker._private_known_crontabs": "select insert update",
    "graphile_worker._private_tasks": "select insert",
    "graphile_worker.migrations": "select",
  });
});

test("its functions are those that its code calls, and its code calls no others", async () => {
  const granted = new Set(
    await column(`select p.oid::regproc from pg_proc p where p.pronamespace::regnamespace::text in ('app_public', 'app_hidden', 'app_private')
      and has_function_privilege('plat_worker', p.oid, 'execute')`),
  );
  const api = new Set(
    await column(`select p.oid::regproc from pg_proc p where p.pronamespace::regnamespace::text in ('app_hidden', 'app_private')
      and (has_function_privilege('plat_authenticator', p.oid, 'execute') or has_function_privilege('plat_user', p.oid, 'execute'))`),
  );
  const text = (await workerSources()).join("\n").replace(/\/\*[^]*?\*\/|\/\/.*/g, "");
  const named = new Set([...text.matchAll(/\bapp_\w+\.\w+(?=\()/g)].map(([name]) => name));
  // That one is executed by the owner at a start.
  expect([...named].filter((name) => !granted.has(name) && !api.has(name))).toEqual([
    "app_private.keep_link_key",
  ]);
  const words = new Set(text.match(/[a-z]\w+/g));
  expect([...granted].filter((name) => !words.has(name.split(".")[1]!))).toEqual([]);
  expect(granted.size).toBeGreaterThan(80);
});

test("it listens to the events of organizations for a process that answers requests as well", async () => {
  for (const what of ["listen_to_events", "unlisten_to_events"])
    expect(await refusal(`select app_private.${what}(gen_random_uuid())`)).toBeUndefined();
});

test.each([
  "select * from pg_authid",
  "select * from app_private.user_passwords",
  "select * from app_private.access_token_secrets",
  "select * from app_private.link_keys",
  "select * from app_private.webhook_secrets",
  "select * from app_private.integration_secrets",
  "select * from app_private.user_otps",
  "select * from app_public.leads",
  "select * from app_public.users",
  "select * from app_hidden.user_identities",
  "insert into app_public.events default values",
  "update app_public.events set data = '{}'",
  "delete from app_public.events",
  "truncate app_public.events",
  "update app_public.organization_user_connections set role = 'OWNER'",
  "update app_private.mail_deliveries set outcome = 'SENT'",
  "set role plat_owner",
  "set role plat_user",
  "set role plat_anonymous",
  "set role plat_authenticator",
  "set session authorization plat_owner",
  "set session_replication_role = replica",
  "create table app_private.traps (id int)",
  "create table public.traps (id int)",
  "create table graphile_worker.traps (id int)",
  "create temp table traps (id int)",
  "create schema traps",
  "create function app_private.trap() returns int language sql as 'select 1'",
  "create or replace function app_private.sign_link(kind text, reader_id uuid) returns text language sql as 'select 1'",
  "create extension pg_stat_statements",
  "create role trap",
  "create trigger trap before insert on graphile_worker._private_jobs for each row execute function app_private.tg__add_job()",
  "alter role plat_worker superuser",
  "alter role plat_worker bypassrls",
  "alter role plat_authenticator password 'x'",
  "alter table app_public.events disable trigger all",
  "alter table app_public.leads disable row level security",
  "alter table app_private.sandbox_objects add column trap int",
  "alter function app_private.sign_link(text, uuid) security invoker",
  "drop table app_public.events",
  "drop table graphile_worker._private_jobs",
  "drop function app_private.sign_link(text, uuid)",
  "drop policy worker on graphile_worker._private_jobs",
  "grant plat_owner to plat_worker",
  "comment on table app_public.leads is ''",
  "copy app_public.leads to program 'cat'",
  "select pg_read_file('postgresql.conf')",
  "select pg_terminate_backend(pid) from pg_stat_activity where usename <> current_user and pid <> pg_backend_pid()",
  "select app_private.keep_link_key('\\x00')",
  "select app_private.add_job('files__sweep')",
  "select app_private.set_claims('{}')",
  "select app_private.act_as_principal(null, null)",
  "select app_public.current_user_id()",
])("is refused: %s", async (sql) => {
  expect(await refusal(sql)).toBe("42501");
});

test("another login is accepted if it is a member, and has no further privileges", async () => {
  const name = new URL(database.ownerUrl).pathname.slice(1);
  const role = `${name}_jobs`;
  const url = new URL(database.workerUrl);
  Object.assign(url, { username: role, password: "word" });
  await owner.query(`create role ${role} login password 'word' in role plat_worker`);
  try {
    await requireLimited("WORKER_URL", url.href);
    await onConnection(url.href, async (client) => {
      await client.query("select app_private.clock_step_names()");
      await client.query(
        "insert into graphile_worker._private_tasks (identifier) values ('nothing') on conflict do nothing",
      );
      await expect(client.query("select from app_public.leads")).rejects.toMatchObject({ code: "42501" });
    });
    for (const other of ["plat_user", "pg_read_all_data", "plat_owner"]) {
      await owner.query(`grant ${other} to ${role}`);
      await expect(requireLimited("WORKER_URL", url.href)).rejects.toThrow(
        // The owner is a member of roles itself.
        `WORKER_URL logs in as ${role}, which is in ${other}`,
      );
      await owner.query(`revoke ${other} from ${role}`);
    }
    await owner.query(`alter role ${role} replication`);
    await expect(requireLimited("WORKER_URL", url.href)).rejects.toThrow(/which may replicate: /);
  } finally {
    await owner.query(`drop role ${role}`);
  }
  await requireLimited("WORKER_URL", database.workerUrl);
  await requireLimited("AUTHENTICATOR_URL", database.authenticatorUrl);
  await expect(requireLimited("WORKER_URL", database.ownerUrl)).rejects.toThrow(/is a superuser/);
});

test("the server's settings are refused", async () => {
  await expect(worker.query("alter system set log_statement = 'all'")).rejects.toMatchObject({
    code: "42501",
  });
});

test("text arguments of functions never become part of a statement", async () => {
  const { rows } = await owner.query<{ name: string; types: string[] }>(`
    select p.oid::regproc as name, array(select format_type(t, null) from unnest(p.proargtypes) t) as types from pg_proc p
    where p.pronamespace = 'app_private'::regnamespace and p.prosecdef and has_function_privilege('plat_worker', p.oid, 'execute') order by 1`);
  const texts = [`'"; select %s %I; --`, "app_private.user_passwords", "user_passwords"];
  const values: Record<string, unknown> = {
    uuid: "00000000-0000-4000-8000-000000000000",
    integer: 1,
    bigint: 1,
    boolean: true,
    interval: "1 second",
    "timestamp with time zone": "2026-01-01T00:00:00Z",
    bytea: Buffer.from("x"),
    jsonb: "{}",
    json: "{}",
  };
  const wrong: string[] = [];
  for (const { name, types } of rows)
    for (const text of types.includes("text") ? texts : [""]) {
      const given = types.map((type) => (type.endsWith("[]") ? [] : type === "text" ? text : values[type]));
      const call = `select ${name}(${types.map((type, place) => `$${place + 1}::${type}`).join(", ")})`;
      const code = await refusal(call, given);
      // A statement that does not parse, or names an object that does not exist.
      if (/^42/.test(code ?? "")) wrong.push(`${call} with ${text}: ${code}`);
    }
  expect(wrong).toEqual([]);
});

test("only declared columns can be resealed", async () => {
  const call = "select * from app_private.sealed_otherwise($1, $2, $3, $4, $5)";
  const outcomeOf = (relation: string, name: string) => refusal(call, [relation, name, "none", null, 10]);
  expect(await outcomeOf("app_private.webhook_secrets", "sealed")).toBeUndefined();
  // P0002: no such row.
  expect(await outcomeOf("app_private.user_passwords", "hash")).toBe("P0002");
  expect(await outcomeOf("app_private.webhook_secrets", "webhook_id")).toBe("P0002");
  expect(
    await refusal("select app_private.seal_anew($1, $2, $3)", ["app_public.users", "first_name", "[]"]),
  ).toBe("P0002");
  expect(await refusal("select app_private.sweep_retention('app_public.leads', 10)")).toBe("P0002");
});
