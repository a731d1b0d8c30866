-- Operators administer the service as a whole. They cannot be appointed over the API, only by the owner of the
-- database.

comment on table app_private.operators is
  'Operators of the service, who see and change the jobs of all organizations, but no other data.';

create function app_private.make_operator(email text) returns text
language plpgsql volatile as $$
declare
  account app_public.users;
begin
  select u.* into account from app_public.users u where u.id = app_private.account_named(email)
    and u.deleted_at is null and u.email_verified_at is not null;
  if account.id is null then
    return format('There is no account with the confirmed address %s.', email);
  end if;
  insert into app_private.operators (user_id) values (account.id) on conflict do nothing;
  return format('%s is an operator of the service.', email);
end $$;
comment on function app_private.make_operator(text) is
  'For the owner of the database: makes the account with that address an operator of the service. Says what became '
  'of it.';

create function app_private.end_operator(email text) returns text
language plpgsql volatile as $$
begin
  delete from app_private.operators o where o.user_id = app_private.account_named(email);
  return case when found then format('%s is no operator any more.', email)
    else format('%s was no operator.', email) end;
end $$;
comment on function app_private.end_operator(text) is
  'For the owner of the database: revokes what make_operator granted; returns the outcome as a sentence.';

create function app_private.operator_list() returns setof text
language sql stable rows 5 as $$
  select i.email::text from app_private.operators o
  join app_hidden.user_identities i on i.user_id = o.user_id order by 1
$$;
comment on function app_private.operator_list() is
  'For the owner of the database: email addresses of the operators of the service.';

create function app_hidden.is_operator() returns boolean
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  -- Only signed-in operators: access tokens act within organizations.
  select app_hidden.setting('token_id') is null and exists (select from app_private.operators o
    join app_public.users u on u.id = o.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    where o.user_id = app_public.current_user_id())
$$;
comment on function app_hidden.is_operator() is
  'Whether the viewer is signed in and an operator of the service.';

create function app_private.require_operator() returns void
language plpgsql stable as $$
begin
  perform app_hidden.require_viewer();
  if not app_hidden.is_operator() then
    perform app_hidden.fail('FORBIDDEN',
      'Only operators of the service may do this. The owner of the database appoints operators.');
  end if;
end $$;
comment on function app_private.require_operator() is
  'Refuses a viewer who is not signed in as an operator, also one who owns organizations: for what concerns all.';

create function app_public.users_is_operator(u app_public.users) returns boolean
language sql stable as $$
  select case when u.id = (select app_public.current_user_id()) then app_hidden.is_operator() end
$$;
comment on function app_public.users_is_operator is
  'Whether the viewer is an operator of the service; null for other users.';
grant execute on function app_public.users_is_operator to plat_user, plat_anonymous;
grant execute on function app_hidden.is_operator to plat_user, plat_anonymous;
