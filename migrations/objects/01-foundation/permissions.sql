-- Permissions are data: what each role includes, and its scope. Policies ask three questions, each answered once per
-- statement: in which organizations, in which further projects, and in which projects only for the viewer's own leads
-- does the viewer have a permission?
--
-- The lists of a project use different plans for viewers who only have own records and for those who have all: no
-- project may be in both sets, such as a private project of one of their organizations in which another one takes part.
-- Policies return the same rows in either case.

comment on table app_private.role_permissions is
  'The permissions of a role in its organization, or of an affiliated organization''s members in a project '
  '(in_affiliated). OWN reaches the leads assigned to the viewer.';

insert into app_private.role_permissions (role, permission)
select role, permission
from unnest(array['OWNER', 'ADMIN']) role, unnest(array[
  'org.member', 'org.admin', 'org.billing', 'project.read', 'project.manage', 'inventory.read', 'inventory.manage',
    'inventory.describe',
  'construction.write', 'lead.read', 'lead.write', 'buyer.read', 'buyer.write', 'buyer.pii', 'call.recording',
    'sale.read', 'sale.write',
  'sale.strategy', 'finance.read', 'finance.write', 'marketing.read', 'marketing.manage', 'audit.read', 'workflow.read',
    'workflow.run',
  'workflow.manage', 'report.read', 'report.run', 'report.manage', 'privacy.erase']) permission;
insert into app_private.role_permissions (role, permission) values ('OWNER', 'org.owner');
insert into app_private.role_permissions (role, permission, reach) values
  ('MEMBER', 'org.member', 'ALL'), ('MEMBER', 'project.read', 'ALL'), ('MEMBER', 'inventory.read', 'ALL'),
  ('MEMBER', 'inventory.describe', 'ALL'),
  ('MEMBER', 'lead.read', 'OWN_WHERE_PRIVATE'), ('MEMBER', 'lead.write', 'OWN_WHERE_PRIVATE'),
  ('MEMBER', 'buyer.read', 'OWN_WHERE_PRIVATE'), ('MEMBER', 'buyer.write', 'OWN_WHERE_PRIVATE'),
  ('MEMBER', 'sale.read', 'OWN_WHERE_PRIVATE'), ('MEMBER', 'sale.write', 'OWN_WHERE_PRIVATE'),
  ('MEMBER', 'marketing.read', 'ALL'), ('MEMBER', 'workflow.read', 'ALL'), ('MEMBER', 'workflow.run', 'ALL'),
  ('MEMBER', 'report.read', 'ALL'), ('MEMBER', 'report.run', 'ALL');
insert into app_private.role_permissions (role, permission, reach, in_affiliated)
select role, permission, reach, true
from unnest(array['SELLER', 'AGENCY', 'BROKER']) role, (values
  ('project.read', 'ALL'), ('inventory.read', 'ALL'), ('lead.read', 'OWN'), ('lead.write', 'OWN'),
  ('buyer.read', 'OWN'), ('buyer.write', 'OWN'),
  ('sale.read', 'OWN'), ('sale.write', 'OWN')) p (permission, reach);
insert into app_private.role_permissions (role, permission, reach, in_affiliated) values
  ('BUILDER', 'project.read', 'ALL', true), ('BUILDER', 'construction.write', 'ALL', true),
  ('MARKETER', 'project.read', 'ALL', true), ('MARKETER', 'marketing.read', 'ALL', true),
  ('LENDER', 'project.read', 'ALL', true), ('TITLE', 'project.read', 'ALL', true),
  ('VIEWER', 'project.read', 'ALL', true);

-- Permissions of members of an affiliated organization: those of its role, restricted by the owner.
create view app_private.affiliate_permissions with (security_invoker = true, security_barrier = true) as
  select p.project_id, p.owner_id, p.organization_id, r.permission, r.reach
  from app_public.project_organizations p
  join app_private.role_permissions r on r.role = p.role and r.in_affiliated
    and (p.permissions is null or r.permission = any (p.permissions))
  where p.role <> 'OWNER';
comment on view app_private.affiliate_permissions is
  'Which permissions the members of an organization have in a project of another one, and how far each reaches.';

create function app_hidden.scopes_allow(permission text) returns boolean
language sql stable parallel safe as $$
  -- An access token with scopes has only those permissions; "lead.*" means all permissions of that kind.
  select case when app_hidden.setting('scopes') is null then true
    else permission = any (string_to_array(app_hidden.setting('scopes'), ','))
      or split_part(permission, '.', 1) || '.*' = any (string_to_array(app_hidden.setting('scopes'), ',')) end
$$;

create function app_private.is_open(second_factor_due_at timestamptz) returns boolean
language sql stable parallel safe as $$ select second_factor_due_at is null or second_factor_due_at > now() $$;
comment on function app_private.is_open(timestamptz) is
  E'@lookedAt\n\nWhether a membership gives its permissions: not where the organization requires a second factor that '
  'its member lacks. Whatever looks for memberships of the viewer asks it.';

-- Each of the following five sets is computed by a function (find_…), and read by policies through another one, which
-- PostgreSQL inlines. If the API passes the viewer's cached access (access.sql), that function returns it. The API
-- passes it for queries only, because a mutation may change the sets within its own transaction.
create function app_hidden.handed_access(permission text, part int) returns uuid[]
language sql stable parallel safe as $$
  -- PERF: one expression, which PostgreSQL puts in the place of the call. plat.access is such as
  -- ",lead.read=1,org.member=2,".
  select split_part(current_setting('plat.access_' ||
    split_part(split_part(current_setting('plat.access'), ',' || permission || '=', 2), ',', 1)), '|', part)::uuid[]
$$;
comment on function app_hidden.handed_access(text, int) is
  'One of the five sets for a permission, of those that the API has handed on.';

create function app_hidden.find_viewer_organizations(permission text) returns uuid[]
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return '{}';
  end if;
  return array(
    select m.organization_id from app_public.organization_user_connections m
    join app_private.role_permissions r on r.role = m.role and r.permission = find_viewer_organizations.permission
      and not r.in_affiliated
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and (r.reach = 'ALL' or (r.reach = 'OWN_WHERE_PRIVATE' and not exists (
        select from app_public.projects p where p.organization_id = m.organization_id and p.lead_assignment = 'PRIVATE'
          and p.deleted_at is null))));
end $$;
create function app_hidden.viewer_organizations(permission text) returns uuid[]
language sql stable parallel safe as $$
  select case when current_setting('plat.access', true) <> '' then app_hidden.handed_access(permission, 1)
    else app_hidden.find_viewer_organizations(permission) end
$$;
comment on function app_hidden.viewer_organizations(text) is
  'The organizations in all of whose records the viewer has the permission.';

create function app_hidden.find_viewer_projects(permission text) returns uuid[]
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[];
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return '{}';
  end if;
  -- PERF: evaluated once; as a sub-select of each branch, it would be evaluated for each.
  organizations := app_hidden.viewer_organizations(find_viewer_projects.permission);
  return array(
    select p.project_id from app_public.organization_user_connections m
    join app_private.affiliate_permissions p on p.organization_id = m.organization_id
      and p.permission = find_viewer_projects.permission and p.reach = 'ALL'
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and p.owner_id <> all (organizations)
    union
    select p.id from app_public.organization_user_connections m
    join app_private.role_permissions r on r.role = m.role and r.permission = find_viewer_projects.permission
      and not r.in_affiliated
      and r.reach = 'OWN_WHERE_PRIVATE'
    join app_public.projects p on p.organization_id = m.organization_id and p.lead_assignment <> 'PRIVATE'
      and p.deleted_at is null
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and m.organization_id <> all (organizations));
end $$;
create function app_hidden.viewer_projects(permission text) returns uuid[]
language sql stable parallel safe as $$
  select case when current_setting('plat.access', true) <> '' then app_hidden.handed_access(permission, 2)
    else app_hidden.find_viewer_projects(permission) end
$$;
comment on function app_hidden.viewer_projects(text) is
  'Further projects in all of whose records the viewer has the permission: those of other organizations, or the open '
  'ones where some are private.';

create function app_hidden.find_viewer_own_projects(permission text) returns uuid[]
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[];
  projects uuid[];
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return '{}';
  end if;
  -- PERF: evaluated once; as a sub-select of each branch, it would be evaluated for each.
  organizations := app_hidden.viewer_organizations(find_viewer_own_projects.permission);
  projects := app_hidden.viewer_projects(find_viewer_own_projects.permission);
  return array(
    select p.project_id from app_public.organization_user_connections m
    join app_private.affiliate_permissions p on p.organization_id = m.organization_id
      and p.permission = find_viewer_own_projects.permission and p.reach = 'OWN'
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and p.owner_id <> all (organizations)
      and p.project_id <> all (projects)
    union
    select p.id from app_public.organization_user_connections m
    join app_private.role_permissions r on r.role = m.role and r.permission = find_viewer_own_projects.permission
      and not r.in_affiliated
      and r.reach = 'OWN_WHERE_PRIVATE'
    join app_public.projects p on p.organization_id = m.organization_id and p.lead_assignment = 'PRIVATE'
      and p.deleted_at is null
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and m.organization_id <> all (organizations)
      and p.id <> all (projects));
end $$;
create function app_hidden.viewer_own_projects(permission text) returns uuid[]
language sql stable parallel safe as $$
  select case when current_setting('plat.access', true) <> '' then app_hidden.handed_access(permission, 3)
    else app_hidden.find_viewer_own_projects(permission) end
$$;
comment on function app_hidden.viewer_own_projects(text) is
  'Projects where the viewer has the permission for the leads assigned to them only.';

create function app_hidden.colleague_ids() returns setof uuid
language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
begin
  return query
    select distinct c.user_id
    from app_public.organization_user_connections m
    join app_public.organization_user_connections c on c.organization_id = m.organization_id
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      -- An access token only sees colleagues of organizations in which its scopes allow something.
      and (app_hidden.setting('scopes') is null or exists (select from app_private.role_permissions r
        where r.role = m.role and not r.in_affiliated and app_hidden.scopes_allow(r.permission)));
end $$;
comment on function app_hidden.colleague_ids() is
  'Users who share an organization with the viewer; by an access token, one in which it opens something.';

create function app_hidden.partner_organizations() returns setof uuid
language plpgsql stable security definer rows 20 set search_path = pg_catalog, pg_temp as $$
declare
  organizations uuid[] := app_hidden.viewer_organizations('project.read');
begin
  if organizations <> '{}' then
    return query
      select p.organization_id from app_public.project_organizations p
        where p.owner_id = any (organizations) and p.role <> 'OWNER'
      union
      select p.owner_id from app_public.project_organizations p
        where p.organization_id = any (organizations) and p.role <> 'OWNER';
  end if;
end $$;
comment on function app_hidden.partner_organizations() is
  'The organizations that work with one of the viewer''s in a project: affiliated with it there, or its owner.';

create function app_hidden.partner_ids() returns setof uuid
language plpgsql stable security definer rows 50 set search_path = pg_catalog, pg_temp as $$
declare
  -- An access token only sees colleagues of organizations in which its scopes allow something.
  organizations uuid[] := array(
    select m.organization_id from app_public.organization_user_connections m
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid)
      and (app_hidden.setting('scopes') is null or exists (select from app_private.role_permissions r
        where r.role = m.role and not r.in_affiliated and app_hidden.scopes_allow(r.permission))));
begin
  if organizations <> '{}' then
    return query
      select m.user_id from app_public.project_organizations p
        join app_public.organization_user_connections m on m.organization_id = p.organization_id
        where p.owner_id = any (organizations) and p.role <> 'OWNER'
      union
      select f.user_id from app_private.former_affiliates f where f.owner_id = any (organizations)
      union
      -- Users who work on a deal see each other: authors of notes, assignees of tasks, hosts of appointments.
      select p.user_id from app_public.leads l
        cross join lateral (
          select n.author_id as user_id from app_public.lead_notes n
            where n.lead_id = l.id and n.deleted_at is null
          union all select t.created_by_id from app_public.tasks t
            where t.lead_id = l.id and t.deleted_at is null
          union all select t.assignee_id from app_public.tasks t
            where t.lead_id = l.id and t.deleted_at is null
          union all select a.host_id from app_public.appointments a
            where a.lead_id = l.id and a.deleted_at is null) p
        where l.assignee_id = app_public.current_user_id() and l.deleted_at is null
          and l.project_id = any ((select app_hidden.viewer_own_projects('lead.read'))::uuid[])
      union
      select p.user_id from app_public.buyers b
        cross join lateral (
          select n.author_id as user_id from app_public.lead_notes n
            where n.buyer_id = b.id and n.deleted_at is null
          union all select t.created_by_id from app_public.tasks t
            where t.buyer_id = b.id and t.deleted_at is null
          union all select t.assignee_id from app_public.tasks t
            where t.buyer_id = b.id and t.deleted_at is null
          union all select a.host_id from app_public.appointments a
            where a.buyer_id = b.id and a.deleted_at is null) p
        where b.assignee_id = app_public.current_user_id() and b.deleted_at is null
          and b.project_id = any ((select app_hidden.viewer_own_projects('buyer.read'))::uuid[]);
  end if;
end $$;
comment on function app_hidden.partner_ids() is
  'Users that the viewer works with in a project, with their public profile: members of organizations affiliated '
  'with the viewer''s projects, also after the affiliation ended if they had deals; and, for viewers who see own '
  'leads only, those who work on these leads with them.';

-- A function that runs with more rights than its caller sees every row, whatever its caller sees.
create function app_private.viewer_reaches(relation regclass, id uuid, command "char") returns boolean
language plpgsql stable as $$
declare
  viewer constant regrole := case when app_public.current_user_id() is null then 'plat_anonymous' else 'plat_user' end;
  condition text;
  result boolean;
begin
  select string_agg(format('(%s)', regexp_replace(pg_get_expr(p.polqual, p.polrelid),
      '\mFROM (app_public\.\w+) (\w+)(\s+)WHERE ', 'FROM \1 \2\3WHERE app_private.viewer_sees(''\1'', \2.id) AND ',
      'g')), ' or ') into condition
    from pg_policy p where p.polrelid = relation and p.polcmd in (command, '*') and p.polpermissive
      and viewer = any (p.polroles);
  -- The policies of another table apply separately. Any other form would bypass them.
  if regexp_replace(condition, 'FROM app_public\.\w+ \w+\s+WHERE app_private\.viewer_sees', '', 'g')
      ~ '\mFROM app_public\.'
    or exists (select from pg_policy p where p.polrelid = relation and not p.polpermissive) then
    raise exception 'the policies of % have a form that viewer_reaches does not read', relation;
  end if;
  execute format('select exists (select from %s where id = $1 and (%s))', relation, coalesce(condition, 'false'))
    into result using id;
  return result;
end $$;
comment on function app_private.viewer_reaches(regclass, uuid, "char") is
  'Whether the policies of a table for a command (as pg_policy.polcmd names it) show the viewer a row, also where '
  'policies do not apply, in functions that run as the owner.';

create function app_private.viewer_sees(relation regclass, id uuid) returns boolean
language sql stable as $$ select app_private.viewer_reaches(relation, id, 'r') $$;
comment on function app_private.viewer_sees(regclass, uuid) is
  'Whether the policies of a table show the viewer a row, also where policies do not apply, in functions that run '
  'as the owner.';

create function app_hidden.organization_can(organization_id uuid, permission text) returns boolean
language sql stable as $$
  select organization_id = any ((select app_hidden.viewer_organizations(permission))::uuid[])
$$;
comment on function app_hidden.organization_can(uuid, text) is
  'Whether the viewer has the permission in the organization.';

-- PERF: one look-up for this project. The sets of viewer_organizations and so on are for policies, which ask once.
create function app_hidden.project_can(project_id uuid, organization_id uuid, permission text) returns boolean
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
      join app_private.role_permissions r on r.role = m.role and r.permission = project_can.permission
        and not r.in_affiliated
      where m.user_id = viewer and m.organization_id = project_can.organization_id
        and app_private.is_open(m.second_factor_due_at)
        and (only_organization is null or m.organization_id = only_organization))
    or exists (
      select from app_private.affiliate_permissions p
      join app_public.organization_user_connections m on m.organization_id = p.organization_id and m.user_id = viewer
        and app_private.is_open(m.second_factor_due_at)
      where p.project_id = project_can.project_id and p.permission = project_can.permission
        and (only_organization is null or m.organization_id = only_organization));
end $$;
comment on function app_hidden.project_can(uuid, uuid, text) is
  'Whether the viewer has the permission in the project, for all leads or for their own only.';

-- The two sets behind project_can, for statements that check many rows.
create function app_hidden.find_organizations_where(permission text) returns uuid[]
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return '{}';
  end if;
  return array(
    select m.organization_id from app_public.organization_user_connections m
    join app_private.role_permissions r on r.role = m.role and r.permission = find_organizations_where.permission
      and not r.in_affiliated
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid));
end $$;
create function app_hidden.organizations_where(permission text) returns uuid[]
language sql stable parallel safe as $$
  select case when current_setting('plat.access', true) <> '' then app_hidden.handed_access(permission, 4)
    else app_hidden.find_organizations_where(permission) end
$$;
comment on function app_hidden.organizations_where(text) is
  'Organizations in whose projects the viewer has the permission, for all leads or for their own only.';

create function app_hidden.find_projects_where(permission text) returns uuid[]
language plpgsql stable parallel safe security definer set search_path = pg_catalog, pg_temp as $$
begin
  if app_public.current_user_id() is null or not app_hidden.scopes_allow(permission) then
    return '{}';
  end if;
  return array(
    select p.project_id from app_public.organization_user_connections m
    join app_private.affiliate_permissions p on p.organization_id = m.organization_id
      and p.permission = find_projects_where.permission
    where m.user_id = app_public.current_user_id() and app_private.is_open(m.second_factor_due_at)
      and (app_hidden.setting('organization_id') is null
        or m.organization_id = app_hidden.setting('organization_id')::uuid));
end $$;
create function app_hidden.projects_where(permission text) returns uuid[]
language sql stable parallel safe as $$
  select case when current_setting('plat.access', true) <> '' then app_hidden.handed_access(permission, 5)
    else app_hidden.find_projects_where(permission) end
$$;
comment on function app_hidden.projects_where(text) is
  'Projects of other organizations in which the viewer has the permission, for all leads or for their own only.';

create function app_private.asked_once(condition text) returns text
language plpgsql immutable as $$
declare
  a constant text := '([\w.]+)';
  permission constant text := '(''[\w.]+'')';
begin
  condition := regexp_replace(condition, format('app_hidden\.project_can\(%s, %s, %s\)', a, a, permission),
    '(\2 = any ((select app_hidden.organizations_where(\3))::uuid[]) or \1 = any ((select '
    'app_hidden.projects_where(\3))::uuid[]))', 'g');
  condition := regexp_replace(condition, format('app_hidden\.organization_can\(%s, %s\)', a, permission),
    '(\1 = any ((select app_hidden.viewer_organizations(\2))::uuid[]))', 'g');
  condition := regexp_replace(condition, format('app_hidden\.sees_finance\(%s, %s\)', a, a),
    '(\2 = any ((select app_hidden.viewer_organizations(''finance.read''))::uuid[]) or coalesce(\1 = any ((select '
    'app_hidden.viewer_projects(''finance.read''))::uuid[]), false))', 'g');
  return regexp_replace(condition, format('app_hidden\.deal_can\(%s, %s, %s, %s\)', a, a, a, permission),
    'coalesce(\1 = any ((select app_hidden.viewer_organizations(\4))::uuid[]) or \2 = any ((select '
    'app_hidden.viewer_projects(\4))::uuid[]) or (\3 = (select app_public.current_user_id()) and \2 = any ((select '
    'app_hidden.viewer_own_projects(\4))::uuid[])), false)', 'g');
end $$;
comment on function app_private.asked_once(text) is
  'A condition on a row that calls project_can, organization_can, sees_finance or deal_can, written so that a view '
  'asks for the viewer''s organizations and projects once for the statement, not for each row.';

create function app_private.has_part_in(project_id uuid) returns boolean
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_public.current_user_id();
  only_organization constant uuid := app_hidden.setting('organization_id')::uuid;
  owner_id uuid;
  is_open boolean;
begin
  -- The service reads on behalf of the viewer.
  if current_setting('role') not in ('plat_user', 'plat_anonymous') then
    return true;
  end if;
  select p.organization_id, p.deleted_at is null and p.archived_at is null and p.visibility in ('PUBLIC', 'UNLISTED')
    into owner_id, is_open from app_public.projects p where p.id = has_part_in.project_id;
  if is_open or owner_id is null or viewer is null then
    return coalesce(is_open, false);
  end if;
  return exists (select from app_public.organization_user_connections m
      where m.user_id = viewer and m.organization_id = owner_id and app_private.is_open(m.second_factor_due_at)
        and (only_organization is null or m.organization_id = only_organization))
    or exists (select from app_public.project_organizations a
      join app_public.organization_user_connections m on m.organization_id = a.organization_id and m.user_id = viewer
        and app_private.is_open(m.second_factor_due_at)
      where a.project_id = has_part_in.project_id
        and (only_organization is null or m.organization_id = only_organization))
    or has_part_in.project_id = any (array(select app_hidden.viewer_purchase_projects()));
end $$;
comment on function app_private.has_part_in(uuid) is
  'Whether the viewer sees a project, or works with or buys in it whatever they see: of any other its id tells '
  'nothing. For values that are returned beside records, whose own policies apply as well.';

create function app_hidden.require_organization(organization_id uuid, permission text) returns void
language plpgsql stable as $$
begin
  perform app_hidden.require_viewer();
  if not app_hidden.organization_can(organization_id, permission) then
    -- Said in full, because definer functions call this, for whom no policy holds.
    if not app_hidden.organization_can(organization_id, 'org.member')
      and not exists (select from app_public.organizations o
        where o.id = require_organization.organization_id and o.has_public_project and o.deleted_at is null) then
      perform app_hidden.fail('NOT_FOUND', 'There is no such organization.', '{"field": "organizationId"}');
    end if;
    perform app_hidden.fail('FORBIDDEN', format('This requires the permission %s in the organization.', permission),
      jsonb_build_object('permission', permission));
  end if;
end $$;
comment on function app_hidden.require_organization(uuid, text) is
  'Refuses a viewer without the permission in the organization.';

create policy everybody on app_hidden.column_permissions for select to plat_user, plat_anonymous
  using (true);

grant select on app_hidden.column_permissions to plat_user, plat_anonymous;

comment on table app_hidden.column_permissions is
  'Columns that a permission narrower than the one of the table lets somebody change.';
