-- Tables whose rows are visible wherever their project is, as far as they are meant for non-members. Also what such
-- records have in common: scheduled events, and the address of a place.

create function app_private.make_public_table(table_name text, subject text, write_permission text, list_name text,
  list_description text,
  shown text default 'true', made_by_hand boolean default true, event_permission text default null) returns void
language plpgsql volatile as $$
declare
  is_soft boolean := exists (select from pg_attribute a
    where a.attrelid = format('app_public.%I', table_name)::regclass and a.attname = 'deleted_at'
      and not a.attisdropped);
  alive text := case when is_soft then 'deleted_at is null and ' else '' end;
  outsiders text := format('(%s) and exists (select from app_public.projects p where p.id = %I.project_id)', shown,
    table_name);
  writers text := format('organization_id = any ((select app_hidden.viewer_organizations(%1$L))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(%1$L))::uuid[])', write_permission);
begin
  execute format('comment on constraint %I on app_public.%I is %L', table_name || '_project_id_fkey', table_name,
    case when list_name is null then E'@fieldName project\n@backwardBehavior -*\n\nThe project that it belongs to.'
      else format(E'@parent\n@fieldName project\n@foreignFieldName %s\n@backwardDescription %s\n\nIts project.',
        list_name, list_description) end);
  execute format('create policy public_parts on app_public.%I for select to plat_anonymous using (%s%s)', table_name,
    alive, outsiders);
  execute format('create policy portfolio_and_public_parts on app_public.%I for select to plat_user using (%s(
    organization_id = any ((select app_hidden.viewer_organizations(''project.read''))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects(''project.read''))::uuid[])
    or (%s)))', table_name, alive, outsiders);
  if made_by_hand then
    execute format('create policy writers_insert on app_public.%I for insert to plat_user with check (%s)', table_name,
      writers);
    execute format('create policy writers_delete on app_public.%I for delete to plat_user using (%s)', table_name,
      writers);
  end if;
  execute format('create policy writers_update on app_public.%I for update to plat_user using (%s)', table_name,
    writers);
  execute format('grant select on app_public.%I to plat_user, plat_anonymous', table_name);
  perform app_private.make_project_record(table_name, subject, write_permission, event_permission);
end $$;
comment on function app_private.make_public_table is
  'Like make_project_table, for a public part of a project: non-members see rows for which the condition `shown` is '
  'true, wherever they see the project. Without list_name the project has no list of them; made_by_hand: whether '
  'callers create and delete rows.';

create function app_private.tg__parent_project() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- tg_argv: the table of the parent, the column that refers to it.
  execute format('select p.project_id from app_public.%I p where p.id = $1', tg_argv[0])
    into new.project_id using (to_jsonb(new) ->> tg_argv[1])::uuid;
  return new;
end $$;
comment on function app_private.tg__parent_project() is
  'The project of a new row is that of its parent; the arguments are the table of the parent and the column that '
  'refers to it.';

create function app_private.require_step(subject text, from_state text, to_state text) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if exists (select from app_hidden.transitions t
    where t.subject = $1 and t.from_state is not distinct from $2 and t.to_state = $3 and not t.by_service) then
    return;
  end if;
  perform app_hidden.fail('INVALID_TRANSITION',
    case when from_state is null then format('A new record cannot have the initial status %s.', to_state)
      else format('The status %s cannot be changed to %s manually.', from_state, to_state) end,
    jsonb_build_object('from', from_state, 'to', to_state, 'field', 'status', 'allowedTransitions', (
      select coalesce(jsonb_agg(t.to_state order by t.to_state), '[]') from app_hidden.transitions t
      where t.subject = $1 and t.from_state is not distinct from $2 and not t.by_service)));
end $$;
comment on function app_private.require_step(text, text, text) is
  'Refuses a step by hand that the machine does not have; for records whose present state the clock decides, so that '
  'no column holds it.';

create function app_hidden.with_country(address app_public.address, project_id uuid) returns app_public.address
language plpgsql stable as $$
begin
  if address is distinct from null and address.country is null then
    address.country := coalesce((select (p.address).country from app_public.projects p
      where p.id = with_country.project_id), 'US');
  end if;
  return address;
end $$;
comment on function app_hidden.with_country(app_public.address, uuid) is
  'An address that names no country is in that of the project.';

create function app_private.has_part(user_id uuid, project_id uuid) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select exists (select from app_public.organization_user_connections m
    join app_public.project_organizations p on p.organization_id = m.organization_id
    where m.user_id = has_part.user_id and p.project_id = has_part.project_id)
$$;
comment on function app_private.has_part(uuid, uuid) is
  'Whether the user is a member of an organization with a part in the project.';

revoke execute on function app_hidden.with_country from plat_user, plat_anonymous;
