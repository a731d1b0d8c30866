-- Changing the email address of an account. The request requires the password; then both addresses are confirmed by a
-- code from a mail, entered by the signed-in user. The mail to the current address also has a link that stops the
-- change without signing in: the owner of a compromised account keeps it.
--
-- An unconfirmed current address proves nothing: for such an account, only the new address is confirmed, so that a
-- mistyped address can be corrected.
--
-- The response does not reveal whether the new address already has an account: its owner is informed by mail, and no
-- code is sent.

comment on table app_private.email_changes is
  'The one open change of address of a user; only the SHA-256 of its codes is kept.';
comment on column app_private.email_changes.email is
  E'@personal\n@personal\n\nNew address, which replaces the current one when both are confirmed.';
comment on table app_private.email_change_stops is
  'SHA-256 of the links that stop a change, in mails to the present address: each stops what is open, also where it '
  'was asked for again since.';
comment on table app_private.former_emails is
  'Confirmed addresses that accounts had: invitations on their way to one are accepted until then.';
comment on column app_private.former_emails.email is E'@personal\n\nThe former address.';

comment on type app_public.email_change is 'A pending change of the email address of an account.';
comment on column app_public.email_change.email is
  E'@notNull\n\nNew address, which replaces the current one when both are confirmed.';
comment on column app_public.email_change.is_confirmed is
  E'@notNull\n\nWhether the owner of the new address confirmed the change.';
comment on column app_public.email_change.is_former_confirmed is
  E'@notNull\n\n'
  'Whether the current address has confirmed the change; not required if the current address was never verified.';
comment on column app_public.email_change.requested_at is E'@notNull\n\nWhen the user requested the change.';
comment on column app_public.email_change.expires_at is E'@notNull\n\nDeadline for both confirmations.';

create function app_private.request_email_change_mails(user_id uuid) returns void
language sql volatile as $$
  select app_private.add_job('user__email_change_requested', jsonb_build_object('user_id', user_id),
    job_key => 'user__email_change_requested ' || user_id)
$$;

create function app_public.request_email_change(email app_public.email_address,
  password app_public.password_proof, second_factor_code app_public.second_factor_code default null)
returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  viewer constant uuid := app_hidden.require_whole_account();
  address constant text := lower(request_email_change.email);
  result app_public.users;
begin
  if address is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'email is required.', '{"field": "email"}');
  end if;
  perform app_private.require_password(viewer, request_email_change.password);
  if exists (select from app_hidden.user_identities i where i.user_id = viewer and i.email = address) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Your account already has this address.', '{"field": "email"}');
  end if;
  perform app_private.require_second_factor(viewer, second_factor_code);
  perform app_private.rate_limit('email_change.account', viewer::text);
  select * into result from app_public.users u where u.id = viewer;
  insert into app_private.email_changes as c (user_id, email, former_confirmed_at)
    values (viewer, address, case when result.email_verified_at is null then now() end)
    on conflict on constraint email_changes_pkey do update set email = excluded.email, code_sha256 = null,
      confirmed_at = null, former_code_sha256 = null, former_confirmed_at = excluded.former_confirmed_at,
      requested_at = excluded.requested_at, expires_at = excluded.expires_at;
  perform app_private.request_email_change_mails(viewer);
  return app_hidden.masked(result);
end $$;
comment on function app_public.request_email_change is $$
@arg email New address, which replaces the current one when both are confirmed.
@arg password Current password, to confirm the request.
@arg second_factor_code Code of the authenticator app, or a recovery code; required if the account has a second factor.

Requests a change of the email address of the viewer's account. Both addresses receive a code for
`confirmEmailChange`, and the current one also a link that stops the change. The address changes when both have
confirmed, within a day. A new request replaces the previous one. If the new address already has an account, the
response is the same, and its owner is notified by mail.$$;

create function app_public.confirm_email_change(token text) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
  given constant bytea := sha256(convert_to(btrim(token), 'UTF8'));
  change app_private.email_changes;
  former text;
  was_verified boolean;
  result app_public.users;
begin
  update app_private.email_changes c set
      confirmed_at = case when c.code_sha256 = given then now() else c.confirmed_at end,
      former_confirmed_at = case when c.former_code_sha256 = given then now() else c.former_confirmed_at end
    where c.user_id = viewer and c.expires_at > now() and given in (c.code_sha256, c.former_code_sha256)
    returning * into change;
  if change.user_id is null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'This code is unknown, older than a day or for another account; request the change again.',
      '{"field": "token"}');
  end if;
  if change.confirmed_at is not null and change.former_confirmed_at is not null then
    select i.email, u.email_verified_at is not null into former, was_verified
      from app_hidden.user_identities i join app_public.users u on u.id = i.user_id
      where i.user_id = viewer for update of i, u;
    begin
      update app_hidden.user_identities i set email = change.email where i.user_id = viewer;
    exception when unique_violation then
      -- The code proves that the viewer owns the address.
      perform app_hidden.fail('CONFLICT',
        'Another account has taken this address in the meantime; nothing was changed.',
        '{"field": "token"}');
    end;
    -- Codes sent to the former address become invalid.
    delete from app_private.email_changes c where c.user_id = viewer;
    delete from app_private.email_change_stops s where s.user_id = viewer;
    delete from app_private.user_otps o where o.user_id = viewer;
    delete from app_private.email_verifications v where v.user_id = viewer;
    delete from app_private.former_emails f where f.user_id = viewer and f.email = change.email;
    if was_verified then
      insert into app_private.former_emails as f (user_id, email, until)
        values (viewer, former, now() + interval '30 days')
        on conflict on constraint former_emails_pkey do update set until = excluded.until;
      perform app_private.tell_account(viewer, 'EMAIL_CHANGED', jsonb_build_object('email', change.email), former);
    end if;
    update app_public.users u set email_verified_at = coalesce(u.email_verified_at, now()) where u.id = viewer;
    perform app_private.tell_account(viewer, 'EMAIL_CHANGED', jsonb_build_object('email', change.email));
  end if;
  select * into result from app_public.users u where u.id = viewer;
  return app_hidden.masked(result);
end $$;
comment on function app_public.confirm_email_change is $$
@arg token Code from the mail that `requestEmailChange` sent to the new or to the current address.

Confirms a change of the viewer's email address from one of the two addresses; it takes effect when both have
confirmed. Codes sent to the former address become invalid. Sessions, access tokens, feeds and purchases are kept,
and invitations sent to the former address are accepted for another 30 days. If the account had no verified address
before, access is revoked as by `verifyEmail`.$$;

create function app_public.cancel_email_change() returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
  result app_public.users;
begin
  delete from app_private.email_changes c where c.user_id = viewer;
  select * into result from app_public.users u where u.id = viewer;
  return app_hidden.masked(result);
end $$;
comment on function app_public.cancel_email_change is
  'Cancels a pending change of the viewer''s email address; its codes become invalid. Does nothing if none is '
  'pending.';
grant execute on function app_public.request_email_change, app_public.confirm_email_change,
  app_public.cancel_email_change to plat_user, plat_anonymous;

create function app_public.users_email_change(u app_public.users) returns app_public.email_change
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row(c.email, c.confirmed_at is not null, c.former_confirmed_at is not null, c.requested_at,
    c.expires_at)::app_public.email_change
  from app_private.email_changes c
  where c.user_id = u.id and u.id = app_public.current_user_id() and app_hidden.has_whole_account()
    and c.expires_at > now()
$$;
grant execute on function app_public.users_email_change to plat_user, plat_anonymous;
comment on function app_public.users_email_change is 'Pending change of the email address; null except for the user.';

-- For the task that sends the mails.
create function app_private.issue_email_change(user_id uuid)
returns table (wanted text, email text, code text, former_email text, former_code text, stop_token text,
  expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  is_taken boolean;
begin
  select c.email, c.email, c.expires_at, case when c.former_confirmed_at is null then i.email end, exists (
      select from app_hidden.user_identities o where o.email = c.email)
    into wanted, email, expires_at, former_email, is_taken
    from app_private.email_changes c
    join app_hidden.user_identities i on i.user_id = c.user_id
    join app_public.users u on u.id = c.user_id and u.status = 'ACTIVE' and u.deleted_at is null
    where c.user_id = issue_email_change.user_id and c.expires_at > now() and c.confirmed_at is null
    for update of c;
  if not found then
    return;
  end if;
  code := case when not is_taken then app_private.random_text(24) end;
  if former_email is not null then
    former_code := app_private.random_text(24);
    stop_token := app_private.random_text(43);
  end if;
  -- The limit is not reported, so that nobody is flooded because somebody else enters their address.
  if not app_private.is_within_limit('verification.address', email) then
    email := null;
    code := null;
  end if;
  update app_private.email_changes c set code_sha256 = sha256(convert_to(code, 'UTF8')),
      former_code_sha256 = sha256(convert_to(former_code, 'UTF8'))
    where c.user_id = issue_email_change.user_id;
  insert into app_private.email_change_stops (token_sha256, user_id, expires_at)
    select sha256(convert_to(stop_token, 'UTF8')), issue_email_change.user_id, expires_at where stop_token is not null;
  return next;
end $$;
comment on function app_private.issue_email_change(uuid) is
  'Makes the codes of a change of address (143 bits each) and the link that stops it. Without a code: the new address '
  'has an account; without a new address: it was written to often enough today; without a former one: nobody has '
  'confirmed that. No row where there is nothing to send.';
grant execute on function app_private.issue_email_change(uuid) to plat_worker;

-- The link that stops it.
create function app_private.email_change_to_stop(token text) returns text
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select c.email from app_private.email_change_stops s join app_private.email_changes c on c.user_id = s.user_id
  where s.token_sha256 = sha256(convert_to(left(token, 200), 'UTF8')) and s.expires_at > now() and c.expires_at > now()
$$;
comment on function app_private.email_change_to_stop(text) is
  'The new address of the change that a link stops; null for one that is unknown, too old, or over.';

create function app_private.stop_email_change(token text) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  stopped uuid;
begin
  delete from app_private.email_changes c using app_private.email_change_stops s
    where s.token_sha256 = sha256(convert_to(left(token, 200), 'UTF8')) and s.expires_at > now()
      and c.user_id = s.user_id and c.expires_at > now() returning c.user_id into stopped;
  if stopped is null then
    return false;
  end if;
  delete from app_private.email_change_stops s where s.user_id = stopped;
  perform from app_public.users u where u.id = stopped for no key update;
  perform app_private.end_sessions(stopped);
  perform app_private.tell_account(stopped, 'EMAIL_CHANGE_STOPPED');
  return true;
end $$;
comment on function app_private.stop_email_change(text) is
  'Stops a change of address at the request of the owner of the current one, and ends the sessions of the account, '
  'because the person who requested the change knows the password. Whether there was one.';
grant execute on function app_private.email_change_to_stop, app_private.stop_email_change to plat_authenticator;

create function app_private.has_address(user_id uuid, email text) returns boolean
language sql stable as $$
  select exists (select from app_hidden.user_identities i where i.user_id = $1 and i.email = $2)
    or exists (select from app_private.former_emails f where f.user_id = $1 and f.email = $2 and f.until > now()
      -- Somebody else may have it by now.
      and not exists (select from app_hidden.user_identities o where o.email = $2))
$$;
comment on function app_private.has_address(uuid, text) is
  'Whether an address is that of the account, or was until 30 days ago.';
