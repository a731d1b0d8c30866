-- Why a person sees a record of an organization, or does not: what an administrator asks when somebody misses one. The
-- answer comes from the policies themselves, evaluated as that person, so that it cannot differ from them.

comment on type app_public.access_explanation is
  'Explanation of why a person can or cannot see a record, and what they can do with it.';
comment on column app_public.access_explanation.is_visible is E'@notNull\n\nWhether the person can read the record.';
comment on column app_public.access_explanation.reason is
  E'@notNull\n\nReason why the person can or cannot see the record.';
comment on column app_public.access_explanation.roles is
  E'@notNull\n\n'
  'Roles of the person that apply to the record: in the organization, such as MEMBER, and in the project through '
  'an affiliated organization, such as SELLER (Seller Sisters).';
comment on column app_public.access_explanation.permissions is
  E'@notNull\n\nPermissions of the person to read records of this type here, including those for own records only.';
comment on column app_public.access_explanation.missing_permissions is
  E'@notNull\n\nPermissions that would show records of this type, and that the person lacks here.';
comment on column app_public.access_explanation.may_update is
  E'@notNull\n\nWhether their permissions let them change it; its status may still refuse a change.';
comment on column app_public.access_explanation.may_delete is
  E'@notNull\n\nWhether their permissions let them delete it; its status may still refuse it.';
comment on column app_public.access_explanation.is_field_visible is
  'Whether the person can read the value of the field; null if no field was named, or if it is empty or hidden from '
  'the viewer as well.';

create function app_private.act_as(user_id uuid) returns void
language plpgsql stable as $$
begin
  perform set_config('plat.user_id', coalesce(user_id::text, ''), true), set_config('plat.organization_id', '', true),
    set_config('plat.scopes', '', true), set_config('plat.token_id', '', true),
    set_config('plat.session_id', '', true), set_config('plat.access', '', true);
end $$;
comment on function app_private.act_as(uuid) is
  'Makes another person the viewer, as if they had signed in; null: a visitor.';

create function app_private.roles_in(user_id uuid, organization_id uuid, project_id uuid) returns text[]
language sql stable as $$
  select array(
    select m.role::text from app_public.organization_user_connections m
      where m.user_id = $1 and m.organization_id = $2
    union all
    select format('%s (%s)', p.role, o.name) from app_public.organization_user_connections m
      join app_public.project_organizations p on p.organization_id = m.organization_id and p.project_id = $3
        and p.role <> 'OWNER'
      join app_public.organizations o on o.id = p.organization_id
      where m.user_id = $1)
$$;
comment on function app_private.roles_in(uuid, uuid, uuid) is
  'The roles of a user in an organization, and in a project of it as a member of an affiliated one.';

create function app_private.reading_permissions(relation regclass) returns text[]
language sql stable as $$
  select array(select distinct m[1] from pg_policy p
    cross join regexp_matches(pg_get_expr(p.polqual, p.polrelid), '''([a-z]+\.[a-z_]+)''::text', 'g') m
    where p.polrelid = relation and p.polcmd in ('r', '*') order by 1)
$$;
comment on function app_private.reading_permissions(regclass) is
  'The permissions that the policies for reading a table ask for.';

create function app_private.explain_viewer(relation regclass, id uuid, organization_id uuid, project_id uuid,
  roles text[]) returns app_public.access_explanation
language plpgsql stable as $$
#variable_conflict use_variable
declare
  viewer constant uuid := app_public.current_user_id();
  permissions constant text[] := app_private.reading_permissions(relation);
  granted constant text[] := array(select p from unnest(permissions) p where case when project_id is null
    then app_hidden.organization_can(organization_id, p)
    else app_hidden.project_can(project_id, organization_id, p) end);
  result app_public.access_explanation;
begin
  result.is_visible := app_private.viewer_reaches(relation, id, 'r');
  result.may_update := result.is_visible and app_private.viewer_reaches(relation, id, 'w');
  result.may_delete := result.is_visible and app_private.viewer_reaches(relation, id, 'd');
  result.roles := roles;
  result.permissions := granted;
  result.missing_permissions := array(select p from unnest(permissions) p where p <> all (granted));
  if not result.is_visible then
    result.reason := case when granted <> '{}' then 'NOT_ASSIGNED' when roles = '{}' then 'NO_PART'
      -- Here, or in an organization that is affiliated with the project: others are none of the viewer's business.
      when exists (select from app_public.organization_user_connections m where m.user_id = viewer
        and (m.organization_id = explain_viewer.organization_id
          or exists (select from app_public.project_organizations p
            where p.project_id = explain_viewer.project_id and p.organization_id = m.organization_id))
        and not app_private.is_open(m.second_factor_due_at)) then 'SECOND_FACTOR_MISSING'
      else 'PERMISSION_MISSING' end;
    return result;
  end if;
  result.reason := case
    when exists (select from unnest(granted) p where organization_id = any (app_hidden.viewer_organizations(p))
      or project_id = any (app_hidden.viewer_projects(p))) then 'PERMISSION'
    when granted <> '{}' then 'OWN_RECORD' else 'PERSONAL' end;
  if result.reason <> 'PERMISSION' then
    perform app_private.act_as(null);
    if app_private.viewer_reaches(relation, id, 'r') then
      result.reason := 'PUBLIC';
    end if;
    perform app_private.act_as(viewer);
  end if;
  return result;
end $$;
comment on function app_private.explain_viewer(regclass, uuid, uuid, uuid, text[]) is
  'Explanation of why the viewer can or cannot see a record, and what they can do with it.';

create function app_private.is_told(relation regclass, id uuid, column_name name) returns boolean
language plpgsql stable as $$
declare
  result boolean;
begin
  execute format('select (to_jsonb(%s) ->> %L) is not null from %s t where t.id = $1',
    case when app_hidden.masked_columns(relation) = '{}' then 't' else 'app_hidden.masked(t)' end, column_name,
    relation) into result using id;
  return result;
end $$;
comment on function app_private.is_told(regclass, uuid, name) is
  'Whether the viewer, who can see the record, can read the value of its column.';

create function app_private.known_person(user_id uuid, organization_id uuid, roles text[]) returns boolean
language sql stable as $$
  select roles <> '{}' or user_id in (select app_hidden.colleague_ids())
    or user_id in (select app_hidden.partner_ids())
    or exists (select from app_public.buyers b where b.user_id = $1 and b.organization_id = $2)
    or exists (select from app_public.reservations r where r.buyer_id = $1 and r.organization_id = $2)
$$;
comment on function app_private.known_person(uuid, uuid, text[]) is
  'Whether a user has a part in an organization that its administrators know of.';

create function app_public.explain_access(organization_id app_public.id_or_slug, user_id uuid, type text, id uuid,
  field text default null) returns app_public.access_explanation
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_variable
declare
  settings constant text[] := array['user_id', 'organization_id', 'scopes', 'token_id', 'session_id', 'access'];
  before constant text[] := array(select coalesce(current_setting('plat.' || s, true), '') from unnest(settings)
    with ordinality s (s, n) order by n);
  organization constant uuid := app_hidden.record_id('organizations', organization_id, 'organizationId');
  relation regclass;
  host uuid;
  project uuid;
  roles text[];
  column_name name;
  viewer_is_told boolean := false;
  result app_public.access_explanation;
begin
  perform app_hidden.require_organization(organization, 'org.admin');
  select to_regclass(format('app_public.%I', r.table_name)) into relation from app_hidden.record_types r
    where app_hidden.camel(r.subject) = lower(left(type, 1)) || substr(type, 2) and exists (select from pg_attribute a
      where a.attrelid = to_regclass(format('app_public.%I', r.table_name)) and a.attname = 'organization_id'
        and not a.attisdropped);
  if relation is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'No records of an organization have this type; use a type such as Lead.',
      '{"field": "type"}');
  end if;
  execute format('select t.organization_id, (to_jsonb(t) ->> %L)::uuid from %s t where t.id = $1 '
      'and to_jsonb(t) ->> ''deleted_at'' is null',
    case when relation = 'app_public.projects'::regclass then 'id' else 'project_id' end, relation)
    into host, project using id;
  if host is distinct from organization or not app_private.viewer_sees(relation, id) then
    perform app_hidden.fail('NOT_FOUND', 'There is no such record in this organization.', '{"field": "id"}');
  end if;
  roles := app_private.roles_in(user_id, organization, project);
  if not app_private.known_person(user_id, organization, roles) then
    perform app_hidden.fail('NOT_FOUND', 'Nobody with this id takes part in the organization.', '{"field": "userId"}');
  end if;
  if field is not null then
    select a.attname into column_name from pg_attribute a where a.attrelid = relation and a.attnum > 0
      and not a.attisdropped and app_hidden.camel(a.attname) = field and (a.attname = any (
        app_hidden.masked_columns(relation)) or has_column_privilege('plat_user', relation, a.attnum, 'select'));
    if column_name is null then
      perform app_hidden.fail('BAD_USER_INPUT', 'Specify a field that holds a value of the record, such as status.',
        '{"field": "field"}');
    end if;
    viewer_is_told := app_private.is_told(relation, id, column_name);
  end if;
  perform app_private.act_as(user_id);
  result := app_private.explain_viewer(relation, id, host, project, roles);
  if viewer_is_told then
    result.is_field_visible := result.is_visible and app_private.is_told(relation, id, column_name);
  end if;
  perform set_config('plat.' || s, before[n], true) from unnest(settings) with ordinality s (s, n);
  return result;
end $$;
grant execute on function app_public.explain_access to plat_user;
comment on function app_public.explain_access is $$
@arg organization_id Id or slug of the organization that the record belongs to.
@arg user_id Id of the person: a member, a member of an affiliated organization, or a buyer.
@arg type GraphQL type of the record, such as Lead.
@arg id Id of the record; the viewer must see it, too.
@arg field Name of a field of the record, such as price, to check whether the person can read its value.

Explains why a person can or cannot see a record, and what they can do with it. The policies are evaluated as that
person, signed in without an access token. Requires the role OWNER or ADMIN.$$;
