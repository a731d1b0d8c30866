-- Sessions, one for each sign-in. A login token names its session, and the statement that finds the user of a request
-- checks that the session is active: ending a session invalidates its tokens immediately. There are two kinds:
--
--   one login token      30 days, as `login` has always returned
--   refreshable          login tokens of 15 minutes; a refresh token, which works once and returns the next two, for 14
--                        days after its last use and 90 days in total
--
-- A refresh token that is used a second time was copied: its session ends, because the rightful owner is unknown. Only
-- the previous one may be repeated, within half a minute and while the current one is unused, because the response may
-- have been lost. The current one is then invalid, so that only one is valid at any time.

comment on domain app_public.session_device is
  E'@transform requestingDevice\n@given\n\nThe program that signs in, as its request tells it.';
comment on domain app_public.refresh_token_proof is E'@transform proveRefreshToken\n\nA refresh token.';
comment on constraint refresh_token_proof_hashed on domain app_public.refresh_token_proof is
  'Not a valid refresh token.';

comment on table app_private.sessions is
  'What each sign-in opened. Ended ones stay for a day; those that were opened before sessions had rows, and were '
  'taken up at their first use (is_adopted), until their tokens have expired.';
comment on column app_private.sessions.network is
  E'@personal\n\nWhere it was opened, as app_private.network_of tells it.';
comment on column app_private.sessions.device is E'@personal\n\nThe program that signed in.';
comment on column app_private.sessions.last_network is E'@personal\n\nWhere it was used last.';
comment on table app_private.refresh_tokens is
  'SHA-256 of the refresh tokens of a session: the present one, and those that were used, to know when one comes '
  'again.';
comment on column app_private.refresh_tokens.successor_sha256 is 'The one that was given for it.';

comment on type app_public.session is 'An active sign-in of a browser, app or program.';
comment on column app_public.session.id is E'@notNull\n\nId of the session, for `logout`.';
comment on column app_public.session.device is
  'Client that signed in, from its user agent, such as "Firefox on Windows"; null if unknown.';
comment on column app_public.session.network is
  'IP address of the sign-in; for IPv6 its network, such as 2001:db8::/64.';
comment on column app_public.session.last_network is
  'IP address of the last use; for IPv6 its network, such as 2001:db8::/64.';
comment on column app_public.session.created_at is E'@notNull\n\nWhen the session started.';
comment on column app_public.session.last_used_at is 'Time of the last request, to the minute; null before the first.';
comment on column app_public.session.expires_at is E'@notNull\n\nWhen the session expires, even if it is used.';
comment on column app_public.session.is_current is E'@notNull\n\nWhether the session belongs to this request.';
comment on column app_public.session.is_refreshable is
  E'@notNull\n\nWhether the session uses refresh tokens instead of one token for 30 days.';

create function app_private.give_tokens(session app_private.sessions, session_epoch int)
returns app_public.authentication
language plpgsql volatile as $$
declare
  secret constant text := 'plat_refresh_' || app_private.random_text(43);
  result app_public.authentication;
begin
  result.user_id := session.user_id;
  result.session_id := session.id;
  result.token_type := 'Bearer';
  result.expires_at := session.expires_at;
  if session.is_refreshable then
    result.expires_at := date_trunc('second', least(session.expires_at, now() + interval '15 minutes'));
    result.refresh_token := secret;
    result.refresh_expires_at := least(session.expires_at, now() + interval '14 days');
    insert into app_private.refresh_tokens (token_sha256, session_id, expires_at)
      values (sha256(convert_to(secret, 'UTF8')), session.id, result.refresh_expires_at);
  end if;
  result.token := jsonb_build_object('sub', session.user_id, 'epoch', session_epoch, 'sid', session.id,
    'iat', extract(epoch from date_trunc('second', now()))::bigint,
    'exp', extract(epoch from result.expires_at)::bigint);
  return result;
end $$;
comment on function app_private.give_tokens(app_private.sessions, int) is
  'The tokens of a session as they are from now on.';

create function app_private.open_session(user_id uuid, session_epoch int, is_refreshable boolean, device text)
returns app_public.authentication
language plpgsql volatile as $$
declare
  most constant int := 100;
  network constant text := app_private.network_of(app_hidden.setting('ip'));
  session app_private.sessions;
begin
  -- The user is locked: two sign-ins at once are counted one after the other.
  update app_private.sessions s set ended_at = now() where s.id = any (array(
    select o.id from app_private.sessions o where o.user_id = open_session.user_id and o.ended_at is null
      and o.expires_at > now() order by coalesce(o.last_used_at, o.created_at) desc, o.id desc offset most - 1));
  -- Nor does repeated signing in accumulate rows. Those that were taken up stay: their tokens do not say that they had
  -- a row.
  delete from app_private.sessions s where s.id = any (array(
    select o.id from app_private.sessions o where o.user_id = open_session.user_id and o.ended_at is not null
      and not o.is_adopted order by o.ended_at desc, o.id desc offset most));
  insert into app_private.sessions (user_id, device, network, is_refreshable, expires_at)
    values (user_id, open_session.device, network, coalesce(is_refreshable, false), date_trunc('second', now())
      + case when open_session.is_refreshable then interval '90 days' else interval '30 days' end)
    returning * into session;
  return app_private.give_tokens(session, session_epoch);
end $$;
comment on function app_private.open_session(uuid, int, boolean, text) is
  'Opens a session of a user, who is locked and has proved who they are. Of more than 100 at a time, the one ends that '
  'was not used for longest; of those that have ended, 100 are kept.';

create function app_private.end_sessions(user_id uuid, but uuid default null) returns void
language plpgsql volatile as $$
begin
  update app_private.sessions s set ended_at = now()
    where s.user_id = end_sessions.user_id and s.ended_at is null and s.id is distinct from but;
  -- And tokens whose sessions have no rows, because they were given out before sessions had any.
  update app_private.user_passwords p set session_epoch = p.session_epoch + 1 where p.user_id = end_sessions.user_id;
end $$;
comment on function app_private.end_sessions(uuid, uuid) is 'Ends the sessions of a user, except one that is kept.';

-- Each request.
create function app_private.authenticate_session(user_id uuid, session_epoch int, session_id uuid default null,
  is_recorded boolean default false, ip text default null, expires_at timestamptz default null)
returns table (viewer_id uuid, token_id uuid, read_only boolean, organization_id uuid, scopes text[],
  second_factor_withholds text)
language plpgsql volatile security definer rows 1 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  known uuid;
  used timestamptz;
begin
  -- PERF: late sessions are rare, so the partial index is small.
  select u.id, false, case when exists (select from app_public.organization_user_connections m where m.user_id = u.id
      and m.second_factor_due_at <= now()) then app_private.second_factor_withholds(u.id) end, s.id, s.last_used_at
    into viewer_id, read_only, second_factor_withholds, known, used
    from app_public.users u
    join app_private.user_passwords p on p.user_id = u.id
    left join app_private.sessions s on s.id = authenticate_session.session_id and s.user_id = u.id
    where u.id = authenticate_session.user_id and u.status = 'ACTIVE' and u.deleted_at is null
      and case when s.id is not null then s.ended_at is null and s.expires_at > now()
        else not is_recorded and p.session_epoch = authenticate_session.session_epoch end;
  if not found then
    return;
  end if;
  -- On a read-only server, such as a standby or one with a full disk, reads remain possible.
  begin
    if known is null then
      insert into app_private.sessions (id, user_id, is_adopted, last_network, last_used_at, expires_at)
        select authenticate_session.session_id, viewer_id, true, app_private.network_of(ip),
          date_trunc('minute', now()), authenticate_session.expires_at
        where authenticate_session.session_id is not null and authenticate_session.expires_at is not null
        on conflict do nothing;
    elsif used is null or used < date_trunc('minute', now()) then
      -- One of many parallel requests writes it, the others do not wait.
      update app_private.sessions s
        set last_used_at = date_trunc('minute', now()),
          last_network = coalesce(app_private.network_of(ip), s.last_network)
        where s.id = (select l.id from app_private.sessions l where l.id = known for update skip locked);
    end if;
  exception when read_only_sql_transaction or disk_full then null;
  end;
  return next;
end $$;
comment on function app_private.authenticate_session(uuid, int, uuid, boolean, text, timestamptz) is
  E'@step The login token is verified; its user, epoch and session are what it says.\n\nWho signs in with a login '
  'token; no row when its session has ended, or the user may not sign in. A token that was given out before sessions '
  'had rows (is_recorded is false) is good while the epoch of the user is; its session gets a row.';
grant execute on function app_private.authenticate_session to plat_authenticator;

create function app_public.users_sessions(u app_public.users) returns app_public.session[]
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select coalesce(array_agg(row(s.id, s.device, s.network, coalesce(s.last_network, s.network), s.created_at,
      s.last_used_at, s.expires_at, s.id is not distinct from app_hidden.setting('session_id')::uuid,
      s.is_refreshable)::app_public.session
    order by coalesce(s.last_used_at, s.created_at) desc, s.id desc), '{}')
  from app_private.sessions s
  where s.user_id = u.id and u.id = app_public.current_user_id() and app_hidden.has_whole_account()
    and s.ended_at is null and s.expires_at > now()
    and (not s.is_refreshable or exists (select from app_private.refresh_tokens r where r.session_id = s.id
      and r.used_at is null and r.expires_at > now()))
$$;
grant execute on function app_public.users_sessions to plat_user, plat_anonymous;
comment on function app_public.users_sessions is
  'Active sessions, last used first; empty for other users and for restricted access tokens.';

create function app_public.logout(session_ids uuid[] default null, others boolean default false)
returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer_id constant uuid := app_hidden.require_whole_account();
  used constant uuid := app_hidden.setting('session_id')::uuid;
  result app_public.users;
begin
  if cardinality(session_ids) > 100 then
    perform app_hidden.fail('LIMIT_EXCEEDED',
      'At most 100 sessions can be ended at a time.', '{"field": "sessionIds", "limit": 100}');
  end if;
  if exists (select from unnest(session_ids) g (id) where not exists (select from app_private.sessions s
      where s.id = g.id and s.user_id = viewer_id)) then
    perform app_hidden.fail('NOT_FOUND', 'You have no such session.', '{"field": "sessionIds"}');
  end if;
  if used is null and session_ids is null and not coalesce(others, false) then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This request was authenticated by an access token, which revokeAccessToken revokes; specify which sessions to '
      'end.',
      '{"field": "sessionIds"}');
  end if;
  -- Serialized with concurrent sign-ins.
  perform from app_public.users u where u.id = viewer_id for no key update;
  if others then
    perform app_private.end_sessions(viewer_id, used);
  end if;
  update app_private.sessions s set ended_at = now() where s.user_id = viewer_id and s.ended_at is null
    and s.id = any (coalesce(session_ids, case when others then '{}' else array[used] end));
  select * into result from app_public.users u where u.id = viewer_id;
  return app_hidden.masked(result);
end $$;
comment on function app_public.logout is $$
@arg session_ids Ids of the sessions to end, from `viewer.sessions`.
@arg others If true, ends all sessions except the current one; with an access token, all sessions.

Ends sessions of the viewer with their login and refresh tokens. Default: the current session. Access tokens are
revoked by `revokeAccessToken`.$$;
grant execute on function app_public.logout to plat_user, plat_anonymous;

-- Refreshing.
create function app_private.refresh_is_repeated(token_sha256 bytea) returns boolean
language sql stable as $$
  select exists (select from app_private.refresh_tokens r where r.token_sha256 = $1 and r.used_at is not null
    and (r.used_at <= now() - interval '30 seconds'
      or not exists (select from app_private.refresh_tokens n where n.token_sha256 = r.successor_sha256
        and n.used_at is null)))
$$;
comment on function app_private.refresh_is_repeated(bytea) is
  'Whether a refresh token was used before, other than by a caller who may not have got the answer.';

create function app_private.begin_refresh(token_sha256 bytea) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  ended app_private.sessions;
begin
  if app_private.refresh_is_repeated(token_sha256) then
    update app_private.sessions s set ended_at = now() from app_private.refresh_tokens r
      where r.token_sha256 = begin_refresh.token_sha256 and s.id = r.session_id and s.ended_at is null
      returning s.* into ended;
    if found then
      perform app_private.tell_account(ended.user_id, 'SESSION_COPIED', jsonb_build_object('device', ended.device));
    end if;
  end if;
end $$;
comment on function app_private.begin_refresh(bytea) is
  'Ends the session of a refresh token that comes again, in a transaction of its own: what is refused afterwards takes '
  'nothing of that back.';
grant execute on function app_private.begin_refresh(bytea) to plat_authenticator;

create function app_public.refresh_session(refresh_token app_public.refresh_token_proof)
returns app_public.authentication
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  given constant bytea := decode(refresh_token, 'hex');
  session app_private.sessions;
  epoch int;
  result app_public.authentication;
begin
  -- Serialized, so that the second of two concurrent calls sees the result of the first.
  select s.* into session from app_private.refresh_tokens r join app_private.sessions s on s.id = r.session_id
    where r.token_sha256 = given for update of s;
  select p.session_epoch into epoch from app_public.users u join app_private.user_passwords p on p.user_id = u.id
    where u.id = session.user_id and u.status = 'ACTIVE' and u.deleted_at is null;
  if epoch is null or session.ended_at is not null or session.expires_at <= now()
    or app_private.refresh_is_repeated(given)
    or not exists (select from app_private.refresh_tokens r where r.token_sha256 = given and r.expires_at > now()) then
    perform app_hidden.fail('UNAUTHENTICATED',
      'The session has ended: this refresh token is unknown, expired or already used. Sign in again.');
  end if;
  perform app_private.rate_limit('session.refresh', session.id::text);
  perform set_config('plat.user_id', session.user_id::text, true), set_config('plat.token_id', '', true),
    set_config('plat.session_id', session.id::text, true);
  -- The one that was given for it, where it comes again, is void.
  update app_private.refresh_tokens r set used_at = coalesce(r.used_at, now())
    where r.token_sha256 in (given, (select g.successor_sha256 from app_private.refresh_tokens g
      where g.token_sha256 = given));
  result := app_private.give_tokens(session, epoch);
  update app_private.refresh_tokens r set successor_sha256 = sha256(convert_to(result.refresh_token, 'UTF8'))
    where r.token_sha256 = given;
  return result;
end $$;
comment on function app_public.refresh_session is
  E'@withoutViewer For those whose login token has expired; the refresh token says who it is.\n@becomes '
  'user_id\n@eachTime\n@arg refresh_token The current refresh token of the session.\n\n'
  'Returns new tokens for a session that `login` opened with `refreshable`. A refresh token can be used once; the '
  'response contains the next one. Reuse ends the session and notifies the user by mail, except that the previous '
  'token is accepted again within 30 seconds, in case the response was lost.';
grant execute on function app_public.refresh_session to plat_user, plat_anonymous;
