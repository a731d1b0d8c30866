import type { ClientBase } from "pg";
import { policyCalls } from "./policyCalls.ts";
import { visibleReferences } from "./visibleReferences.ts";
import { readSnapshot } from "./snapshot.ts";
import type { SourceWords } from "./sources.ts";

/** Relations that the catalog does not contain: which function calls which. Temporary tables beside those of snapshot.ts. */
const tables = `
create temp table calls (caller oid, callee oid);
create temp table mentions (callee oid);
create temp table worker_mentions (callee oid);
create temp table policy_calls (policy oid, callee oid, per_row boolean, constant boolean);

-- Whoever sees a row sees the row of the other table that its column refers to.
create temp table sights (table_oid oid, number int2, seen oid);

-- Functions that the comments of a table, of its columns and of its fields name in their tags: the API calls them for whoever reads it.
create temp table tag_mentions (callee oid, table_oid oid);

-- Functions that the service's own sources call with its connections.
create temp table service_calls (callee oid);

-- What a statement of a viewer comes to with the viewer's own rights, which hold for the functions of every view too. Of a mutation that is not
-- for visitors, a visitor comes no further than to being told to sign in.
create temp view reached as
  with recursive roots as (
    select r.role, f.oid from functions f cross join unnest(array['plat_user', 'plat_anonymous']) r (role)
    where f.schema = 'app_public' and has_function_privilege(r.role, f.oid, 'execute')
      and (r.role = 'plat_user' or f.volatility <> 'v' or pg_temp.tag(f.comment, 'withoutViewer') is not null)
    union select 'plat_anonymous', f.oid from functions f where f.object in ('app_hidden.require_viewer()', 'app_hidden.refuse_anonymous()')
    union select p.role, c.callee from policy_calls c join policies p on p.oid = c.policy where p.role in ('plat_user', 'plat_anonymous')
    union select r.role, d.refobjid from pg_depend d join pg_rewrite w on w.oid = d.objid join pg_class v on v.oid = w.ev_class
      cross join unnest(array['plat_user', 'plat_anonymous']) r (role)
      where d.classid = 'pg_rewrite'::regclass and d.refclassid = 'pg_proc'::regclass and has_table_privilege(r.role, v.oid, 'select')
    union select r.role, m.callee from tag_mentions m cross join unnest(array['plat_user', 'plat_anonymous']) r (role)
      where r.role = 'plat_user' or exists (select from policies p where p.table_oid = m.table_oid and p.role = r.role and p.command = 'select')
    union select 'plat_user', c.callee from service_calls c join functions f on f.oid = c.callee and f.schema = 'app_hidden'
    -- Only users write.
    union select 'plat_user', t.tgfoid from pg_trigger t
      where not t.tgisinternal and (t.tgtype::int & 4 <> 0 and has_any_column_privilege('plat_user', t.tgrelid, 'insert')
        or t.tgtype::int & 8 <> 0 and has_table_privilege('plat_user', t.tgrelid, 'delete')
        or t.tgtype::int & 16 <> 0 and has_any_column_privilege('plat_user', t.tgrelid, 'update'))
    union select 'plat_user', d.refobjid from pg_depend d
      where d.classid in ('pg_attrdef'::regclass, 'pg_constraint'::regclass) and d.refclassid = 'pg_proc'::regclass),
  reached as (
    select role, oid from roots
    union select r.role, c.callee from reached r join functions f on f.oid = r.oid and not f.definer join calls c on c.caller = f.oid)
  select r.role, f.oid from reached r join functions f using (oid);

-- What it may come to: a mutation that does not tell visitors itself to sign in leaves that to what it calls.
create temp view reachable as
  with recursive reachable as (
    select 'plat_anonymous' as role, f.oid from functions f
    where f.schema = 'app_public' and f.volatility = 'v' and f.source !~ 'app_hidden\\.(require_viewer|refuse_anonymous)\\('
    union select r.role, c.callee from reachable r join functions f on f.oid = r.oid and not f.definer join calls c on c.caller = f.oid)
  select role, oid from reached union select role, oid from reachable
  -- Which role of the service calls it, its tests show.
  union select r.role, s.callee from service_calls s cross join unnest(array['plat_user', 'plat_anonymous']) r (role);
`;

const fill = `
-- Our functions name each other in full, overloads by one name.
insert into calls select distinct f.oid, g.oid
  from functions f
  cross join lateral regexp_matches(f.source, '\\y(app_public|app_hidden|app_private)\\.(\\w+)', 'g') m
  join functions g on g.schema = m[1] and g.name = m[2] and g.oid <> f.oid;

-- By the catalog: triggers, policies, defaults, checks, indexes, views, aggregates, operators.
insert into mentions
  select tgfoid from pg_trigger
  union select d.refobjid from pg_depend d where d.refclassid = 'pg_proc'::regclass and d.classid <> 'pg_proc'::regclass;

-- By its bare name: in what is not SQL, and in the tags of comments.
insert into mentions
  select f.oid from functions f where f.name = any ($1);
insert into worker_mentions
  select f.oid from functions f where f.name = any ($1);
insert into mentions
  select f.oid from functions f
  where f.name in (select distinct w[1] from pg_description d, regexp_matches(d.description, '(?:^|\\n)@[^\\n]*', 'g') line,
    regexp_matches(line[1], '[a-z]\\w+', 'g') w);

insert into tag_mentions
  select distinct f.oid, t.oid from pg_description d
  left join pg_proc p on d.classoid = 'pg_proc'::regclass and p.oid = d.objoid
  left join pg_type a on a.oid = p.proargtypes[0]
  join pg_class t on t.relnamespace = 'app_public'::regnamespace and t.oid = case d.classoid when 'pg_class'::regclass then d.objoid when 'pg_proc'::regclass then a.typrelid end
  cross join lateral regexp_matches(d.description, '(?:^|\\n)@(?:finder|ownFinder|sort)\\s[^\\n]*', 'g') line
  cross join lateral regexp_matches(line[1], '[a-z]\\w+', 'g') w
  join functions f on f.schema = 'app_hidden' and f.name = w[1];

insert into service_calls
  select f.oid from functions f where f.schema || '.' || f.name = any ($1);

-- By the beginning of its name, as in 'step_' || type; a function that makes functions does not call them.
insert into mentions
  select f.oid from functions f
  join (select distinct m[1] as prefix from functions g, regexp_matches(g.source, '''([a-z][a-z_]*_)'' *\\|\\|', 'g') m
    where g.source !~* 'create (or replace )?function') p on starts_with(f.name, p.prefix);
`;

/** Declared by rows of migrations, such as those of app_hidden.ticket_actions. */
const inRows = `
do $$
declare
  t record;
begin
  for t in select object from tables where pg_relation_size(oid) between 1 and 1000000 loop
    execute format($q$
      insert into mentions select f.oid from (select distinct m[1] as schema, m[2] as name
        from %s r, regexp_matches(r::text, '(app_public|app_hidden|app_private)\\.(\\w+)', 'g') m) m
        join functions f using (schema, name)$q$, t.object);
  end loop;
end $$`;

const wordsFor = (statement: string, { all, worker, service }: SourceWords) =>
  statement.includes("worker_mentions") ? worker : statement.includes("service_calls") ? service : all;

/** Creates the tables on this connection, empty. */
export async function createFacts(client: ClientBase): Promise<void> {
  await client.query(tables);
}

/**
 * Fills them, and those of snapshot.ts, with the current state.
 * @param words of the sources outside of the database
 */
export async function gatherFacts(client: ClientBase, words: SourceWords): Promise<void> {
  await readSnapshot(client);
  await client.query(
    "truncate calls, mentions, tag_mentions, worker_mentions, service_calls, policy_calls, sights",
  );
  for (const statement of fill.split(";\n").filter((text) => text.trim() !== ""))
    await client.query(statement, statement.includes("$1") ? [[...wordsFor(statement, words)]] : []);
  await client.query(inRows);
  const { rows } = await client.query<{ oid: number; tree: string }>(
    "select p.oid::int4 as oid, tree from pg_policy p join tables t on t.oid = p.polrelid, unnest(array[p.polqual::text, p.polwithcheck::text]) tree where tree is not null",
  );
  const calls = rows.flatMap(({ oid, tree }) => policyCalls(tree).map((call) => ({ oid, ...call })));
  await client.query(
    "insert into policy_calls select distinct * from unnest($1::int4[]::oid[], $2::int4[]::oid[], $3::boolean[], $4::boolean[])",
    [
      calls.map((call) => call.oid),
      calls.map((call) => call.function),
      calls.map((call) => call.perRow),
      calls.map((call) => call.constant),
    ],
  );
  const { rows: seen } = await client.query<{ table: number; trees: string[] }>(
    `select p.table_oid::int4 as table, array_agg(distinct q.polqual::text) as trees from policies p join pg_policy q on q.oid = p.oid
     where p.permissive and p.command = 'select' and p.role in ('plat_user', 'plat_anonymous') group by 1`,
  );
  const sights = seen.flatMap(({ table, trees }) =>
    visibleReferences(trees).map((sight) => ({ ...sight, by: table })),
  );
  await client.query(
    "insert into sights select distinct * from unnest($1::int4[]::oid[], $2::int2[], $3::int4[]::oid[])",
    [sights.map(({ by }) => by), sights.map(({ column }) => column), sights.map(({ table }) => table)],
  );
}
