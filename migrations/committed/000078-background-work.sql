--! Previous: sha1:59046240bc41e336b863911cb4c3efeaff95a865
--! Hash: sha1:481b87af5f0eca6a787141123eb3d231bf54a159
--! Message: background-work

-- Background work logs in by itself: it runs jobs, and executes the functions that are granted to it.
revoke usage on schema app_public, app_hidden from plat_worker;
revoke all on all tables in schema app_public, app_hidden, app_private from plat_worker;
revoke all on all functions in schema app_public, app_hidden from plat_worker;
alter default privileges in schema app_hidden revoke execute on functions from plat_worker;

do $$
declare
  enumeration record;
begin
  for enumeration in select tablename as name from pg_policies
    where schemaname = 'app_public' and policyname = 'everybody' and tablename like '%\_values'
      and 'plat_worker' = any (roles)
  loop
    execute format('alter policy everybody on app_public.%I to plat_user, plat_anonymous', enumeration.name);
  end loop;
end $$;

create or replace function app_private.create_enum(name text, description text, value_list text[]) returns void
language plpgsql volatile as $$
declare
  type_name text := replace(initcap(replace(name, '_', ' ')), ' ', '');
begin
  execute format('create table app_public.%I (value text primary key, description text not null)', name || '_values');
  execute format('alter table app_public.%I enable row level security', name || '_values');
  execute format('create policy everybody on app_public.%I for select to plat_user, plat_anonymous using (true)',
    name || '_values');
  execute format('grant select on app_public.%I to plat_user, plat_anonymous', name || '_values');
  execute format('comment on table app_public.%I is %L', name || '_values',
    E'@enum\n@enumName ' || type_name || E'\n\n' || description);
  execute format('create domain app_public.%I as text', name);
  execute format('comment on domain app_public.%I is %L', name,
    E'@enum ' || name || E'_values\n\n' || description);
  perform app_private.add_enum_values(name, value_list);
end $$;

grant usage on schema graphile_worker to plat_worker;
grant select on graphile_worker.migrations to plat_worker;
grant execute on function graphile_worker.add_job to plat_worker;
grant select, insert on graphile_worker._private_tasks to plat_worker;
grant select, insert, update on graphile_worker._private_known_crontabs to plat_worker;
grant select, insert, update on graphile_worker._private_job_queues to plat_worker;
grant select, insert, update, delete on graphile_worker._private_jobs to plat_worker;

create policy worker on graphile_worker._private_tasks to plat_worker using (true);
create policy worker on graphile_worker._private_known_crontabs to plat_worker using (true);
create policy worker on graphile_worker._private_job_queues to plat_worker using (true);
create policy worker on graphile_worker._private_jobs to plat_worker using (true);
