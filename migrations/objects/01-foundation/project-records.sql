create function app_private.tg__refuse_archived() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  touched record := case when tg_op = 'DELETE' then old else new end;
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if exists (select from app_public.projects p where p.id = touched.project_id and p.archived_at is not null)
    and app_hidden.setting('clock') is distinct from 'on' then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  return touched;
end $$;

create function app_private.tg__project_organization() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  is_archived boolean;
begin
  select p.organization_id, p.archived_at is not null into new.organization_id, is_archived
    from app_public.projects p where p.id = new.project_id;
  if is_archived then
    perform app_hidden.fail('PROJECT_ARCHIVED', 'This project is archived and read-only; change its status first.');
  end if;
  return new;
end $$;
comment on function app_private.tg__project_organization() is
  'The organization of a new row is that of its project, which must not be archived: both in one look-up.';

create function app_private.make_project_record(table_name text, subject text, write_permission text,
  event_permission text default null) returns void
language plpgsql volatile as $$
begin
  execute format('create trigger _050_organization before insert on app_public.%I for each row execute function '
    'app_private.tg__project_organization()', table_name);
  execute format('create trigger _060_refuse_archived before update or delete on app_public.%I for each row execute '
    'function app_private.tg__refuse_archived()', table_name);
  perform app_private.make_record(table_name, subject, write_permission, event_permission => event_permission);
end $$;
comment on function app_private.make_project_record is
  'make_record for a table with project_id and organization_id: the organization follows the project, archived '
  'projects are read-only.';

create function app_private.make_project_table(table_name text, subject text, read_permission text,
  write_permission text) returns void
language plpgsql volatile as $$
declare
  readers text := format('organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[])', read_permission);
  writers text := format('organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[])', write_permission);
begin
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    format(
    E'@parent\n@fieldName project\n@foreignFieldName %s\n@backwardPermission %s\n@backwardDescription The %s; null '
    'without the permission %2$s.\n\nThe project that it belongs to.',
    app_hidden.camel(table_name), read_permission, replace(table_name, '_', ' ')));
  execute format('create policy readers on app_public.%I for select to plat_user using (deleted_at is null and (%s))',
    table_name, readers);
  execute format('create policy writers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
    writers);
  execute format('create policy writers_update on app_public.%I for update to plat_user using (%s)', table_name,
    writers);
  execute format('create policy writers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
    writers);
  execute format('grant select on app_public.%I to plat_user, plat_anonymous', table_name);
  perform app_private.make_project_record(table_name, subject, write_permission);
end $$;
comment on function app_private.make_project_table is
  'Gives a table like app_private.project_record what it takes to be served: row security by two permissions, and '
  'make_project_record.';

comment on function app_private.tg__refuse_archived() is
  'Refuses writes of rows of an archived project, but for what ends there by the clock (plat.clock).';
