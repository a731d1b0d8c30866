-- Access that is handed on: in which organizations and projects a viewer has each permission is found once, kept by
-- the API with the token, and handed on as settings with each query (app_hidden.handed_access). The batch of each query
-- asks first, in the same round trip, whether token and access are as they were (stop_when_outdated); otherwise it is
-- refused and sent again with the new access. So a query never reads by a permission that was taken before it
-- began.
--
-- Access is found from memberships, from parts of organizations in projects, and from which projects are private.
-- Triggers count up a version of the user or organization whose rows change, in the same transaction. Mutations are
-- handed nothing: what they change holds for the rest of their transaction.

comment on table app_private.access_versions is
  'How often the access of a user, or of the members of an organization, has changed; that of everybody under the nil '
  'UUID.';

create function app_private.count_up_access(parties uuid[]) returns void
language sql volatile as $$
  -- In one order, so that two transactions do not wait for each other.
  insert into app_private.access_versions (party_id)
    select distinct p from unnest(parties) p where p is not null order by p
    on conflict (party_id) do update set version = access_versions.version + 1
$$;
comment on function app_private.count_up_access(uuid[]) is
  'Invalidates the cached access of users, or of the members of organizations, so that their next requests look it '
  'up again.';

create function app_private.tg_members__access() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform app_private.count_up_access(array(select n.user_id from new_rows n));
  elsif tg_op = 'DELETE' then
    perform app_private.count_up_access(array(select o.user_id from old_rows o));
  else
    perform app_private.count_up_access(array(
      select unnest(array[o.user_id, n.user_id]) from old_rows o full join new_rows n on n.id = o.id
      where (o.user_id, o.organization_id, o.role, o.second_factor_due_at)
        is distinct from (n.user_id, n.organization_id, n.role, n.second_factor_due_at)));
  end if;
  return null;
end $$;
create trigger _600_access after insert on app_public.organization_user_connections
  referencing new table as new_rows for each statement execute function app_private.tg_members__access();
create trigger _600_access_changed after update on app_public.organization_user_connections
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_members__access();
create trigger _600_access_ended after delete on app_public.organization_user_connections
  referencing old table as old_rows for each statement execute function app_private.tg_members__access();

create function app_private.tg_project_organizations__access() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform app_private.count_up_access(array(select n.organization_id from new_rows n where n.role <> 'OWNER'));
  elsif tg_op = 'DELETE' then
    perform app_private.count_up_access(array(select o.organization_id from old_rows o where o.role <> 'OWNER'));
  else
    perform app_private.count_up_access(array(
      select unnest(array[o.organization_id, n.organization_id]) from old_rows o full join new_rows n on n.id = o.id
      where (o.project_id, o.owner_id, o.organization_id, o.role, o.permissions)
        is distinct from (n.project_id, n.owner_id, n.organization_id, n.role, n.permissions)));
  end if;
  return null;
end $$;
create trigger _600_access after insert on app_public.project_organizations
  referencing new table as new_rows for each statement
  execute function app_private.tg_project_organizations__access();
create trigger _600_access_changed after update on app_public.project_organizations
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_project_organizations__access();
create trigger _600_access_ended after delete on app_public.project_organizations
  referencing old table as old_rows for each statement
  execute function app_private.tg_project_organizations__access();

create function app_private.tg_projects__access() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  if tg_op = 'INSERT' then
    perform app_private.count_up_access(array(select n.organization_id from new_rows n));
  elsif tg_op = 'DELETE' then
    perform app_private.count_up_access(array(select o.organization_id from old_rows o));
  else
    perform app_private.count_up_access(array(
      select unnest(array[o.organization_id, n.organization_id]) from old_rows o full join new_rows n on n.id = o.id
      where (o.organization_id, o.lead_assignment, o.deleted_at)
        is distinct from (n.organization_id, n.lead_assignment, n.deleted_at)));
  end if;
  return null;
end $$;
create trigger _600_access after insert on app_public.projects
  referencing new table as new_rows for each statement execute function app_private.tg_projects__access();
create trigger _600_access_changed after update on app_public.projects
  referencing old table as old_rows new table as new_rows for each statement
  execute function app_private.tg_projects__access();
create trigger _600_access_ended after delete on app_public.projects
  referencing old table as old_rows for each statement execute function app_private.tg_projects__access();

create function app_private.tg_role_permissions__access() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  perform app_private.count_up_access('{00000000-0000-0000-0000-000000000000}');
  return null;
end $$;
create trigger _600_access after insert or update or delete on app_private.role_permissions
  for each statement execute function app_private.tg_role_permissions__access();

-- Permissions that the viewer has alike are one class, whose sets are found once.
create function app_private.access_of(user_id uuid, organization_id uuid, scopes text[], out access text,
  out classes text[], out parties uuid[], out version bigint)
-- Tokens are looked up on its connections. If a table is locked, each statement determines its own access.
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp set lock_timeout = '250ms' as $$
#variable_conflict use_column
declare
  most constant int := 12;
  most_characters constant int := 30000;
  examples text[];
begin
  perform app_private.set_claims(jsonb_build_object('user_id', access_of.user_id,
    'organization_id', access_of.organization_id, 'scopes', array_to_string(access_of.scopes, ',')));
  -- Read before the access is determined, so that a concurrent change is detected by the next request.
  select array_agg(p.id), coalesce(sum(v.version), 0) into parties, version
    from (select access_of.user_id as id union all select '00000000-0000-0000-0000-000000000000'
      union all select m.organization_id from app_public.organization_user_connections m
        where m.user_id = access_of.user_id) p
    left join app_private.access_versions v on v.party_id = p.id;
  select ',' || coalesce(string_agg(format('%s=%s', c.permission, c.class), ',' order by c.permission), '') || ',',
      array_agg(c.permission order by c.class) filter (where c.is_example)
    into access, examples
    from (
      select s.permission, dense_rank() over (order by s.signature) as class,
        row_number() over (partition by s.signature order by s.permission) = 1 as is_example
      from (
        select g.permission, md5(string_agg(g.what, ',' order by g.what)) as signature
        from (
          select r.permission, m.organization_id || r.reach as what
            from app_public.organization_user_connections m
            join app_private.role_permissions r on r.role = m.role and not r.in_affiliated
            where m.user_id = access_of.user_id
          union all
          select p.permission, m.organization_id || p.reach || p.project_id
            from app_public.organization_user_connections m
            join app_private.affiliate_permissions p on p.organization_id = m.organization_id
            where m.user_id = access_of.user_id) g
        where app_hidden.scopes_allow(g.permission)
        group by g.permission) s) c;
  if cardinality(examples) > most then
    access := null;
    return;
  end if;
  classes := array(
    select concat_ws('|', app_hidden.find_viewer_organizations(e.permission),
      app_hidden.find_viewer_projects(e.permission), app_hidden.find_viewer_own_projects(e.permission),
      app_hidden.find_organizations_where(e.permission), app_hidden.find_projects_where(e.permission))
    from unnest(examples) with ordinality e (permission, class) order by e.class);
  if length(array_to_string(classes, '')) > most_characters then
    access := null;
  end if;
end $$;
comment on function app_private.access_of(uuid, uuid, text[]) is
  E'@step Who a token stands for was found by authenticate_session or authenticate_access_token.\n\nThe access of a '
  'user by a token with this organization and these scopes, where it has any: for each permission its class, and for '
  'each class the five sets of permissions.sql, as handed_access reads them; and from which versions it was found. The '
  'access is null where it is too large to be handed on with each query.';
grant execute on function app_private.access_of to plat_authenticator;

create function app_private.token_holds(user_id uuid, session_id uuid, token_sha256 bytea) returns boolean
language plpgsql stable as $$
#variable_conflict use_column
begin
  -- PERF: two statements, because each takes as long as reading all that it could need.
  if session_id is not null then
    return exists (select from app_public.users u
      join app_private.sessions s on s.user_id = u.id
      where u.id = token_holds.user_id and u.status = 'ACTIVE' and u.deleted_at is null
        and s.id = token_holds.session_id and s.ended_at is null and s.expires_at > now());
  end if;
  return exists (select from app_public.users u
    join app_public.access_tokens t on t.user_id = u.id
    join app_private.access_token_secrets k on k.token_id = t.id
    where u.id = token_holds.user_id and u.status = 'ACTIVE' and u.deleted_at is null
      and k.token_sha256 = token_holds.token_sha256 and t.revoked_at is null
      and (t.expires_at is null or t.expires_at > now())
      and (t.parent_id is null or app_private.token_ended(t.parent_id) is null));
end $$;
comment on function app_private.token_holds(uuid, uuid, bytea) is
  'Whether the login token of a session, or the access token with a hash, still stands for the user.';

create function app_private.stop_when_outdated(user_id uuid, session_id uuid, token_sha256 bytea, parties uuid[],
  version bigint) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  if not app_private.token_holds(stop_when_outdated.user_id, stop_when_outdated.session_id,
      stop_when_outdated.token_sha256)
    or exists (select from app_public.organization_user_connections m
      where m.user_id = stop_when_outdated.user_id and m.second_factor_due_at <= now())
    or version <> (select coalesce(sum(v.version), 0) from app_private.access_versions v
      where v.party_id = any (parties)) then
    raise exception 'the token or its access is not as it was; ask for both anew' using errcode = 'PLAT2';
  end if;
end $$;
comment on function app_private.stop_when_outdated(uuid, uuid, bytea, uuid[], bigint) is
  E'@step The token is verified, by its signature or its hash.\n\n'
  'Raises PLAT2 if a token may no longer be fully valid, or cached access of these versions may be outdated; then '
  'authenticate_session or authenticate_access_token decide. Of parties null the access is not looked at.';
grant execute on function app_private.stop_when_outdated to plat_authenticator;
