-- The end of access to an account. When an address is verified for the first time, or a password is reset by mail, the
-- account may be recovered from somebody who used it without authorization: login tokens, access tokens and connections
-- of the user (feeds, mail accounts) end, except for the session or token of the verification. The first verification
-- also suspends everything created before, because its author is unknown.

comment on type app_public.access_ending is
  'Access that was revoked when the email address was verified or the password was reset or changed.';
comment on column app_public.access_ending.ended_at is E'@notNull\n\nWhen access was revoked.';
comment on column app_public.access_ending.cause is
  E'@notNull\n\nReason: ADDRESS_VERIFIED, PASSWORD_RESET or PASSWORD_CHANGED.';
comment on column app_public.access_ending.sessions is
  E'@notNull\n\nWhether login tokens were revoked: all of them, or all but the one in use.';
comment on column app_public.access_ending.access_tokens is
  E'@notNull\n\nNames of the access tokens that were revoked.';
comment on column app_public.access_ending.integrations is
  E'@notNull\n\nNames of the user''s integrations that were revoked, such as calendar feeds.';
comment on column app_public.access_ending.automations is
  E'@notNull\n\n'
  'Webhooks, workflows and the like that acted on behalf of the user and were suspended. Owners of the '
  'organization can enable them again.';
comment on column app_public.access_ending.memberships is
  E'@notNull\n\n'
  'Names of the organizations that the user already belonged to. Check them after a first verification: somebody '
  'else may have joined or created them with this address.';
comment on column app_private.access_endings.ending is E'@impersonal\n\nWhat ended, by the names of things.';
comment on table app_private.access_endings is 'What ended last of each account, as its user reads it.';

create function app_private.end_access(user_id uuid, cause text, keep_session uuid, keep_tokens uuid[],
  keep_integrations uuid[], reason text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  before text := coalesce(current_setting('plat.service', true), '');
  ending app_public.access_ending;
  one record;
begin
  -- Before the tokens, in the same lock order as creating or revoking one.
  perform from app_public.users u where u.id = end_access.user_id for no key update;
  ending.ended_at := now();
  ending.cause := end_access.cause;
  perform app_private.end_sessions(end_access.user_id, keep_session);
  ending.sessions := true;
  ending.access_tokens := app_private.revoke_access_tokens(array(select t.id from app_public.access_tokens t
    where t.user_id = end_access.user_id and t.revoked_at is null and t.id <> all (coalesce(keep_tokens, '{}'))));
  ending.integrations := '{}';
  perform set_config('plat.service', 'on', true);
  -- A disabled connection could be refreshed, so it loses its credentials, too.
  for one in select i.id, i.name, i.status from app_public.user_integrations i where i.user_id = end_access.user_id
    and i.deleted_at is null and i.id <> all (coalesce(keep_integrations, '{}')) order by i.id
  loop
    perform app_private.suspend_user_integration(one.id, reason);
    if one.status <> 'DISABLED' then
      ending.integrations := ending.integrations || one.name::text;
    end if;
  end loop;
  perform set_config('plat.service', before, true);
  delete from app_private.oauth_attempts a where a.user_id = end_access.user_id;
  ending.automations := case when end_access.cause = 'ADDRESS_VERIFIED' then array(select i ->> 'title'
    from jsonb_array_elements(app_private.review_principals(end_access.user_id, because => reason)) i) else '{}' end;
  ending.memberships := array(select o.name::text from app_public.organization_user_connections m
    join app_public.organizations o on o.id = m.organization_id and o.deleted_at is null
    where m.user_id = end_access.user_id order by o.name);
  insert into app_private.access_endings as e (user_id, ending) values (end_access.user_id, ending)
    on conflict on constraint access_endings_pkey do update set ending = case
      -- A reset that proves the address, too, is one ending.
      when (e.ending).ended_at = now() then row(now(), (e.ending).cause, true,
        (e.ending).access_tokens || (excluded.ending).access_tokens,
        (e.ending).integrations || (excluded.ending).integrations,
        (e.ending).automations || (excluded.ending).automations,
        (excluded.ending).memberships)::app_public.access_ending
      else excluded.ending end;
end $$;
comment on function app_private.end_access(uuid, text, uuid, uuid[], uuid[], text) is
  'Ends login tokens, access tokens and integrations of a user but for those named, and keeps what ended for them to '
  'read; at the first proof of the address, suspends all that they made.';

create function app_private.tg_users__verified() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- The session or token of the verification.
  used_session constant uuid := case when app_public.current_user_id() = new.id
    then app_hidden.setting('session_id')::uuid end;
  used_token constant uuid := case when app_public.current_user_id() = new.id
    then app_hidden.setting('token_id')::uuid end;
begin
  -- An account without earlier use has nothing to end.
  if old.last_login_at is null and not exists (select from app_public.access_tokens t where t.user_id = new.id) then
    return null;
  end if;
  perform app_private.end_access(new.id, 'ADDRESS_VERIFIED', used_session, array(
    with recursive family as (
      select t.id, t.parent_id from app_public.access_tokens t where t.id = used_token
      union all
      select t.id, t.parent_id from family f join app_public.access_tokens t on t.id = f.parent_id
    )
    select f.id from family f), null, 'It was made before the email address of its maker was verified.');
  return null;
end $$;
create trigger _700_verified after update on app_public.users for each row
  when (old.email_verified_at is null and new.email_verified_at is not null)
  execute function app_private.tg_users__verified();

create function app_public.users_access_ending(u app_public.users) returns app_public.access_ending
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select (e.ending).* from app_private.access_endings e
  where e.user_id = u.id and u.id = app_public.current_user_id() and app_hidden.has_whole_account()
$$;
grant execute on function app_public.users_access_ending to plat_user, plat_anonymous;
comment on function app_public.users_access_ending is
  'Access that ended with the latest first-time verification of the address, or the latest reset or change of the '
  'password; null except for the user.';
