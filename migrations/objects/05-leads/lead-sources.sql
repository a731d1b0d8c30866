create policy sellers on app_public.lead_sources for select to plat_user
  using (deleted_at is null and (organization_id = any ((select app_hidden.viewer_organizations('lead.read'))::uuid[])
    or organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[])
    or project_id = any ((select app_hidden.viewer_projects('lead.read'))::uuid[])
    or project_id = any ((select app_hidden.viewer_own_projects('lead.read'))::uuid[])));
create policy managers_insert on app_public.lead_sources for insert to plat_user
  with check (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_update on app_public.lead_sources for update to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));
create policy managers_delete on app_public.lead_sources for delete to plat_user
  using (organization_id = any ((select app_hidden.viewer_organizations('project.manage'))::uuid[]));

select app_private.make_project_record('lead_sources', 'lead_source', 'project.manage');

grant select on app_public.lead_sources to plat_user, plat_anonymous;
grant insert (project_id, name, code, category, active), update (name, category, active), delete on
  app_public.lead_sources to plat_user;

comment on table app_public.lead_sources is 'A marketing source of the leads of a project, such as Website.';
comment on column app_public.lead_sources.name is 'Name of the source, such as Website.';
comment on column app_public.lead_sources.code is
  E'@insertOptional\n\n'
  'Stable code in upper case with underscores, unique in the project. Default: derived from the name.';
comment on column app_public.lead_sources.category is 'Kind of the source.';
comment on column app_public.lead_sources.is_system is
  'Whether the source is built in: it exists in every project and cannot be deleted.';
comment on column app_public.lead_sources.active is 'Whether it is offered for new leads.';
comment on constraint lead_sources_code_format on app_public.lead_sources is
  'A code has upper-case letters, digits and underscores, such as WEB_DIRECT.';
comment on constraint lead_sources_project_id_fkey on app_public.lead_sources is
  E'@parent\n'
  '@fieldName project\n'
  '@foreignFieldName leadSources\n'
  '@backwardPermission lead.read\n'
  '@backwardDescription Lead sources of the project; null without the permission lead.read.\n\n'
  'The project that it belongs to.';
comment on index app_public.lead_sources_code is 'There is already a lead source with this code.';

create function app_private.tg_lead_sources__keep_system() returns trigger
language plpgsql volatile as $$
begin
  if tg_op = 'DELETE' and app_private.is_removing() then
    return old;
  end if;
  if old.is_system then
    perform app_hidden.fail('CONFLICT',
      'This lead source belongs to every project and cannot be deleted; switch it off with active: false.');
  end if;
  return old;
end $$;
create trigger _200_keep_system before delete on app_public.lead_sources for each row
  execute function app_private.tg_lead_sources__keep_system();

create function app_private.tg_lead_sources__code() returns trigger
language plpgsql volatile as $$
begin
  if new.code is null then
    new.code := left(btrim(upper(regexp_replace(app_hidden.fold(new.name), '[^a-z0-9]+', '_', 'g')), '_'), 50);
    if new.code !~ '^[A-Z]' then
      new.code := left('SOURCE_' || new.code, 50);
    end if;
  end if;
  return new;
end $$;
create trigger _200_code before insert on app_public.lead_sources for each row
  execute function app_private.tg_lead_sources__code();

create function app_public.lead_sources_lead_count(s app_public.lead_sources) returns int
language sql stable as $$ select count(*)::int from app_public.leads l where l.source_id = s.id $$;
comment on function app_public.lead_sources_lead_count is
  E'@notNull\n\nNumber of leads from this source that the viewer may see.';

create function app_private.tg_lead_sources__leave_trackers() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  update app_public.trackers t set lead_source_id = null where t.lead_source_id = new.id and t.deleted_at is null;
  return null;
end $$;
create trigger _500_leave_trackers after update of deleted_at on app_public.lead_sources
  for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function app_private.tg_lead_sources__leave_trackers();

create function app_private.lead_source_named(project_id uuid, source text) returns uuid
language sql stable as $$
  select s.id from app_public.lead_sources s
  where s.project_id = lead_source_named.project_id and s.deleted_at is null
    and (s.code = upper(btrim(source)) or app_private.spelling(s.name) = app_private.spelling(source))
  order by s.code = upper(btrim(source)) desc, s.active desc, s.id limit 1
$$;
comment on function app_private.lead_source_named(uuid, text) is
  'The lead source of a project with this code or, where none has it, this name, whatever its case and punctuation.';

create function app_private.tracker_with_key(project_id uuid, source text) returns app_public.trackers
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select t.* from app_public.trackers t
  where t.key = btrim(source) and t.project_id = tracker_with_key.project_id and t.deleted_at is null
$$;
comment on function app_private.tracker_with_key(uuid, text) is
  E'@withoutViewer Keys of trackers are public: advertisements contain them.\n\n'
  'The tracker of a project that has this key: leads with it as their source count for it.';

create function app_hidden.is_tracker_key(project_id uuid, source text) returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (app_private.tracker_with_key(project_id, source)).id is not null
$$;
comment on function app_hidden.is_tracker_key(uuid, text) is
  E'@withoutViewer Keys of trackers are public: advertisements contain them.\n\n'
  'Whether a tracker of the project has this key.';

create function app_hidden.refuse_unknown_source(project_id uuid, source text) returns void
language plpgsql stable as $$
declare
  -- With the rights of the viewer, who sees sources if they may create leads.
  codes constant text[] := array(select s.code from app_public.lead_sources s
    where s.project_id = refuse_unknown_source.project_id and s.active order by s.code);
begin
  perform app_hidden.fail('BAD_USER_INPUT', format('There is no lead source %s in this project. %s', left(source, 100),
    coalesce('Use one of ' || nullif(array_to_string(codes, ', '), '')
      || ', or create the source with createLeadSource.',
      'Create it with createLeadSource.')), jsonb_build_object('field', 'source', 'allowed', to_jsonb(codes)));
end $$;
comment on function app_hidden.refuse_unknown_source(uuid, text) is
  'Refuses a code or name of a lead source that the project does not have; the error lists those that it has.';
