--! Previous: sha1:6c16330818fde0ededfbd5bcbbb005677da03d84
--! Hash: sha1:14547287daf8d239117d8c8872fbdcbf657219e6
--! Message: inventory-at-size

-- What is asked for each row of a list, at 10,000 projects and 1,000,000 units: whether the viewer may see a value, and what
-- a project offers.

-- PERF: one look-up for this project. The sets of viewer_organizations and so on are for policies, which ask once.
create or replace function app_hidden.project_can(project_id uuid, organization_id uuid, permission text) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_public.current_user_id();
  only_organization constant uuid := app_hidden.setting('organization_id')::uuid;
begin
  if viewer is null or not app_hidden.scopes_allow(permission) then
    return false;
  end if;
  return exists (
      select from app_public.organization_user_connections m
      join app_private.role_permissions r on r.role = m.role and r.permission = project_can.permission and not r.in_affiliated
      where m.user_id = viewer and m.organization_id = project_can.organization_id
        and (only_organization is null or m.organization_id = only_organization))
    or exists (
      select from app_public.project_organizations p
      join app_public.organization_user_connections m on m.organization_id = p.organization_id and m.user_id = viewer
      join app_private.role_permissions r on r.role = p.role and r.permission = project_can.permission and r.in_affiliated
      where p.project_id = project_can.project_id and p.role <> 'OWNER'
        and (only_organization is null or m.organization_id = only_organization));
end $$;

-- Whether the viewer may know the price is asked of those only that have such a price.
create or replace function app_public.units_filter_price(u app_public.units, value numrange) returns boolean
language sql stable as $$
  select case when u.price::numeric <@ value then u.status = 'AVAILABLE' or app_hidden.project_can(u.project_id, u.organization_id, 'inventory.read') else false end
$$;
create or replace function app_public.lots_filter_price(l app_public.lots, value numrange) returns boolean
language sql stable as $$
  select case when l.price::numeric <@ value then l.status = 'AVAILABLE' or app_hidden.project_can(l.project_id, l.organization_id, 'inventory.read') else false end
$$;

-- By plpgsql, which keeps its plan, and by the ends of the range, which an index knows.
create function app_hidden.offers_price(project_id uuid, price numrange) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  return exists (select from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE' and u.deleted_at is null
    and u.price >= coalesce(lower($2), 0) and u.price <= coalesce(upper($2), 'infinity') and not isempty($2));
end $$;
create function app_hidden.offers_bedrooms(project_id uuid, bedrooms int4range) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- The upper end of a range of whole numbers is the first that is not in it.
  return exists (select from app_public.units u where u.project_id = $1 and u.status = 'AVAILABLE' and u.deleted_at is null
    and u.effective_bedrooms >= coalesce(lower($2), 0) and u.effective_bedrooms < coalesce(upper($2), 2147483647) and not isempty($2));
end $$;
create or replace function app_public.projects_filter_price(p app_public.projects, value numrange) returns boolean
language sql stable as $$ select app_hidden.offers_price(p.id, value) $$;
create or replace function app_public.projects_filter_bedrooms(p app_public.projects, value int4range) returns boolean
language sql stable as $$ select app_hidden.offers_bedrooms(p.id, value) $$;
drop function app_hidden.offers_unit(uuid, numrange, int4range);
comment on function app_hidden.offers_price(uuid, numrange) is 'Whether a project has a unit for sale at such a price; whoever sees the project sees those.';
comment on function app_hidden.offers_bedrooms(uuid, int4range) is 'Whether a project has a unit for sale with so many bedrooms.';

-- With the bedrooms in it, so that the index alone answers both.
drop index app_public.units_project_available;
create index units_project_available on app_public.units (project_id, price) include (effective_bedrooms) where deleted_at is null and status = 'AVAILABLE';
