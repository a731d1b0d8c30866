--! Previous: sha1:e98620caa4c1394b2497655279d0462ddbfbb9f1
--! Hash: sha1:7d38910a1745e312a5712254f6aab6465c441a15
--! Message: own-projects

-- The lists of a project go one way where the viewer has own records only and another where they have all: no project may be both, such
-- as a private one of their organization that another organization of theirs has a part in. Policies show the same as before.

create or replace function app_hidden.viewer_own_projects(permission text) returns setof uuid
language plpgsql stable security definer rows 5 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[];
  projects uuid[];
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return;
  end if;
  -- PERF: asked once; as a sub-select of each part it would run for each.
  organizations := array(select app_hidden.viewer_organizations(viewer_own_projects.permission));
  projects := array(select app_hidden.viewer_projects(viewer_own_projects.permission));
  return query
    select p.project_id from app_public.organization_user_connections m
    join app_public.project_organizations p on p.organization_id = m.organization_id and p.role <> 'OWNER'
    join app_private.role_permissions r on r.role = p.role and r.permission = viewer_own_projects.permission and r.in_affiliated and r.reach = 'OWN'
    where m.user_id = app_public.current_user_id()
      and (app_hidden.setting('organization_id') is null or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and p.owner_id <> all (organizations)
      and p.project_id <> all (projects)
    union
    select p.id from app_public.organization_user_connections m
    join app_private.role_permissions r on r.role = m.role and r.permission = viewer_own_projects.permission and not r.in_affiliated
      and r.reach = 'OWN_WHERE_PRIVATE'
    join app_public.projects p on p.organization_id = m.organization_id and p.lead_assignment = 'PRIVATE' and p.deleted_at is null
    where m.user_id = app_public.current_user_id()
      and (app_hidden.setting('organization_id') is null or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and m.organization_id <> all (organizations)
      and p.id <> all (projects);
end $$;
