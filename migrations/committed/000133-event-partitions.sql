--! Previous: sha1:e2190824a134d571d37360d06fc4a8156e0d651f
--! Hash: sha1:1900d0cca1345dfe9a42a67a10519e4d93f6a56a
--! Message: event-partitions

-- Enumerations are documented by describe_enum in the files of objects, so that their texts can be edited.

create or replace function app_private.add_enum_values(name text, value_list text[]) returns void
language plpgsql volatile as $$
declare
  all_values text;
begin
  -- Values alone; the first migrations passed pairs of value and description.
  if array_ndims(value_list) = 1 then
    value_list := (select array_agg(array[v.value, ''] order by v.n)
      from unnest(value_list) with ordinality v (value, n));
  end if;
  execute format('insert into app_public.%I (value, description) select v[1], v[2] from (
      select array[$1[i][1], $1[i][2]] as v from generate_subscripts($1, 1) i) pairs', name || '_values')
    using value_list;
  execute format('select string_agg(quote_literal(value), '', '') from app_public.%I', name || '_values')
    into all_values;
  execute format('alter domain app_public.%I drop constraint if exists %I', name, name || '_value');
  execute format('alter domain app_public.%I add constraint %I check (value in (%s))', name, name || '_value',
    all_values);
end $$;

create function app_private.create_enum(name text, value_list text[]) returns void
language sql volatile as $$ select app_private.create_enum(name, '', value_list) $$;

-- The stream of events in partitions by time, by the ids of events, which begin with it. The table becomes the first
-- partition as it is: no row is moved or read. A job gives it its end and makes the partitions that follow
-- (app_private.make_event_partitions). Partitions are in a schema of their own, which no role of the service may use:
-- events are only ever reached through app_public.events, whose policies and grants hold.

-- Keys that refer to events would keep partitions from being detached. Ids of events stay, and may outlive the event.
alter table app_public.webhook_deliveries drop constraint if exists webhook_deliveries_event_id_fkey;
alter table app_public.workflow_executions drop constraint if exists workflow_executions_trigger_event_id_fkey;

create schema if not exists app_partitions;

do $$
declare
  events constant regclass := 'app_public.events';
  -- What hangs on the table where the service has run already, to be put back on the partitioned one: the processes of
  -- the previous version go on until the objects are brought up to date, and no event may pass by its triggers.
  kept constant text[] := array(
    select format('comment on table app_public.events is %L', obj_description(events, 'pg_class'))
    union all
    select pg_get_triggerdef(t.oid) from pg_trigger t where t.tgrelid = events and not t.tgisinternal
    union all
    select format('create policy %I on app_public.events as %s for %s to %s%s', p.policyname, p.permissive, p.cmd,
        array_to_string(p.roles, ', '), ' using (' || p.qual || ')')
      from pg_policies p where p.schemaname = 'app_public' and p.tablename = 'events'
    union all
    select format('grant %s on app_public.events to %s', g.privilege_type, g.grantee::regrole)
      from pg_class c cross join lateral aclexplode(c.relacl) g where c.oid = events and g.grantee <> c.relowner
    union all
    select format('grant %s (%s) on app_public.events to %s', g.privilege_type,
        string_agg(quote_ident(a.attname), ', '), g.grantee::regrole)
      from pg_attribute a cross join lateral aclexplode(a.attacl) g
      where a.attrelid = events and a.attnum > 0 and not a.attisdropped group by g.privilege_type, g.grantee
    union all
    select pg_get_functiondef(p.oid) || coalesce((
        select string_agg(format('; grant execute on function %s to %I', replace(p.oid::regprocedure::text,
          'app_partitions.', 'app_public.'), g.grantee::regrole), '')
        from aclexplode(p.proacl) g where g.grantee not in (0, p.proowner)), '')
      from pg_proc p join pg_class c on c.oid = events and c.reltype = any (p.proargtypes::oid[])
      where p.prokind = 'f');
  one text;
begin
  if (select c.relkind = 'p' from pg_class c where c.oid = events) then
    return;
  end if;
  lock table app_public.events in access exclusive mode;
  for one in select t.tgname from pg_trigger t where t.tgrelid = events and not t.tgisinternal loop
    execute format('drop trigger %I on app_public.events', one);
  end loop;
  alter table app_public.events rename to events_first;
  for one in select i.indexrelid::regclass::text from pg_index i where i.indrelid = events loop
    execute format('alter index %s rename to %I', one, replace(one, 'app_public.events', 'events_first'));
  end loop;
  alter table app_public.events_first set schema app_partitions;
  create table app_public.events (like app_partitions.events_first including defaults including storage
    including comments, constraint events_pkey primary key (id)) partition by range (id);
  comment on table app_partitions.events_first is null;
  for one in select a.attname from pg_attribute a where a.attrelid = events and a.attnum > 0 and not a.attisdropped loop
    execute format('comment on column app_partitions.events_first.%I is null', one);
  end loop;
  create index events_project on app_public.events (project_id, organization_id, sequence)
    where project_id is not null;
  create index events_subject on app_public.events (subject_id, id);
  alter table app_public.events enable row level security;
  alter table app_public.events attach partition app_partitions.events_first for values from (minvalue) to (maxvalue);
  foreach one in array kept loop
    execute one;
  end loop;
end $$;
