-- The ids by which programs of an organization (a CRM, a website, a mailing tool: one system each) identify leads. They
-- belong to the organization of the program, the owner of the project or an affiliated one, and are not visible to
-- others. Deleting a lead releases its ids, like its email address.

comment on table app_private.lead_external_ids is
  'By which ids the systems of an organization know leads; an id names one lead of a system.';
comment on type app_public.lead_external_id is 'Id of a lead in another system of the viewer''s organization.';
comment on column app_public.lead_external_id.system is E'@notNull\n\nName of the system, such as crm.';
comment on column app_public.lead_external_id.external_id is E'@notNull\n\nId of the lead in that system.';
comment on domain app_public.system_name is
  'Name of an external system that leads are identified in, such as crm.';
comment on domain app_public.external_id is 'The id that a record has in another system.';
comment on constraint system_name_format on domain app_public.system_name is
  'The name of a system must be in lower case, such as crm: letters, digits, points, hyphens and underscores, at '
  'most 50 characters.';
comment on constraint external_id_length on domain app_public.external_id is
  'An external id must have 1 to 200 characters.';

create function app_private.viewer_parties(project_id uuid) returns setof uuid
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select p.organization_id from app_public.project_organizations p
  join app_public.organization_user_connections m on m.organization_id = p.organization_id
  where p.project_id = $1 and m.user_id = app_public.current_user_id()
    and app_private.is_open(m.second_factor_due_at)
    and (app_hidden.setting('organization_id') is null
      or m.organization_id = app_hidden.setting('organization_id')::uuid)
  order by p.organization_id <> p.owner_id, p.organization_id
$$;
comment on function app_private.viewer_parties(uuid) is
  'The organizations with a part in the project that the viewer belongs to, and their token opens; the owner first.';

create function app_public.leads_external_ids(l app_public.leads) returns app_public.lead_external_id[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select array(select row(x.system, x.external_id)::app_public.lead_external_id
    from app_public.leads kept join app_private.lead_external_ids x on x.lead_id = kept.id
    -- Only the id of the given row is used, which does not decide about its visibility.
    where kept.id = l.id and x.organization_id = any (array(select app_private.viewer_parties(x.project_id)))
      and app_hidden.deal_can(kept.organization_id, kept.project_id, kept.assignee_id, 'lead.read')
    order by x.system, x.external_id)
$$;
grant execute on function app_public.leads_external_ids to plat_user, plat_anonymous;
comment on function app_public.leads_external_ids is
  E'@notNull\n\n'
  'Ids of the lead in other systems of the viewer''s organization. External ids of other organizations are not '
  'visible.';

create function app_hidden.leads_with_external_id(value text) returns setof uuid
language sql stable security definer rows 1 set search_path = pg_catalog, pg_temp as $$
  select x.lead_id from app_private.lead_external_ids x
  where x.system = split_part(value, ':', 1) and x.external_id = substr(value, length(split_part(value, ':', 1)) + 2)
    and x.organization_id = any (array(select m.organization_id from app_public.organization_user_connections m
      where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
        and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)))
$$;
comment on function app_hidden.leads_with_external_id(text) is
  'Leads that the systems of the viewer''s organizations know by an id, given as system:id; policies say which are '
  'seen.';
create function app_public.leads_filter_external_id(l app_public.leads, value text) returns boolean
language sql stable as $$ select l.id = any (array(select app_hidden.leads_with_external_id(value))) $$;
grant execute on function app_public.leads_filter_external_id to plat_user, plat_anonymous;
comment on function app_public.leads_filter_external_id is
  E'@filter externalId\n'
  '@finder leads_with_external_id\n\n'
  'External id of the lead in the form system:id, such as crm:4711.';

create function app_private.tg_leads__free_external_ids() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  delete from app_private.lead_external_ids x where x.lead_id = new.id;
  return null;
end $$;
create trigger _600_free_external_ids after update of deleted_at on app_public.leads
  for each row when (old.deleted_at is null and new.deleted_at is not null)
  execute function app_private.tg_leads__free_external_ids();
