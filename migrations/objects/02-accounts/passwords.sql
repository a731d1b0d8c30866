-- What users change about their own account: the password, with the current one or with a one-time code from a mail,
-- and their profile.

comment on table app_private.user_otps is 'The one open one-time code of a user; only its SHA-256 is kept.';

create function app_private.set_password(user_id uuid, password text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  insert into app_private.user_passwords as p (user_id, password_hash) values (set_password.user_id, password)
    on conflict on constraint user_passwords_pkey
    do update set password_hash = excluded.password_hash, changed_at = now();
  update app_public.users u set password_changed_at = now() where u.id = set_password.user_id;
  delete from app_private.user_otps o where o.user_id = set_password.user_id;
  delete from app_private.limit_uses u where u.key = 'login ' || set_password.user_id;
  perform app_private.forgive_tries(user_id);
end $$;
comment on function app_private.set_password(uuid, text) is
  'Sets the hash of a user''s password; ends open codes and the wrong attempts from here. The caller ends access.';

create function app_public.update_password(current_password app_public.password_proof,
  new_password app_public.new_password, keep_session boolean default false, keep_access_token_ids uuid[] default null,
  keep_integration_ids uuid[] default null, second_factor_code app_public.second_factor_code default null)
returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer_id uuid := app_hidden.require_whole_account();
  result app_public.users;
begin
  if new_password is null then
    perform app_hidden.fail('BAD_USER_INPUT',
      'A password must have at least 10 characters.', '{"field": "newPassword"}');
  end if;
  perform app_private.require_password(viewer_id, current_password, 'currentPassword');
  perform app_private.require_second_factor(viewer_id, second_factor_code);
  perform app_private.set_password(viewer_id, new_password);
  perform app_private.end_access(viewer_id, 'PASSWORD_CHANGED',
    case when keep_session then app_hidden.setting('session_id')::uuid end,
    coalesce(keep_access_token_ids, array(select t.id from app_public.access_tokens t where t.user_id = viewer_id)),
    coalesce(keep_integration_ids, array(select i.id from app_public.user_integrations i where i.user_id = viewer_id)),
    'The password was changed.');
  perform app_private.tell_account(viewer_id, 'PASSWORD_CHANGED');
  select * into result from app_public.users u where u.id = viewer_id;
  return app_hidden.masked(result);
end $$;
comment on function app_public.update_password is $$
@arg current_password Current password of the viewer, to confirm the request.
@arg new_password 10 characters or more.
@arg keep_session Whether the current session is kept. Default: false.
@arg keep_access_token_ids Ids of access tokens to keep; all others are revoked. Default: all are kept.
@arg keep_integration_ids Ids of the viewer's integrations to keep, such as calendar feeds. Default: all are kept.
@arg second_factor_code Code of the authenticator app, or a recovery code; required if the account has a second factor.

Changes the password of the viewer and revokes their login tokens, by default including the current one. Access
tokens and integrations stay unless the input says otherwise; `accessEnding` of the result lists what was revoked.$$;

create function app_public.create_user_otp(email app_public.email_address) returns boolean
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  -- An address without an account gets a random id and causes the same work; the job then finds no account.
  account uuid := coalesce((select u.id from app_public.users u where u.id = app_private.account_named(email)
    and u.status in ('ACTIVE', 'INVITED') and u.deleted_at is null), md5('otp ' || lower(btrim(email)))::uuid);
begin
  perform app_private.rate_limit('otp.network', app_private.network_of(app_hidden.setting('ip')));
  -- The limit is not reported: the answer must not reveal whether there is an account.
  if app_private.is_within_limit('otp.account', account::text) then
    perform app_private.add_job('user__otp_requested', jsonb_build_object('user_id', account),
      job_key => 'user__otp_requested ' || account);
  end if;
  return true;
end $$;
comment on function app_public.create_user_otp(app_public.email_address) is
  E'@withoutViewer For those who cannot sign in; the code goes to the owner of the address.\n@arg email Email '
  'address of the account.\n\n'
  'Sends a one-time code for `resetPassword` to the email address. Returns true even if no account has the '
  'address. The code is valid for 15 minutes, works once, and replaces the previous one.';

create function app_private.issue_user_otp(user_id uuid) returns table (email text, code text, expires_at timestamptz)
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
begin
  select i.email, app_private.random_text(24), now() + interval '15 minutes' into email, code, expires_at
    from app_hidden.user_identities i join app_public.users u on u.id = i.user_id
    where u.id = issue_user_otp.user_id and u.status in ('ACTIVE', 'INVITED') and u.deleted_at is null;
  if not found then
    return;
  end if;
  insert into app_private.user_otps (user_id, code_sha256, expires_at)
    values (issue_user_otp.user_id, sha256(convert_to(issue_user_otp.code, 'UTF8')), issue_user_otp.expires_at)
    on conflict (user_id) do update set code_sha256 = excluded.code_sha256, expires_at = excluded.expires_at;
  return next;
end $$;
comment on function app_private.issue_user_otp(uuid) is
  'Makes the one-time code that a mail takes to the user (143 bits, 15 minutes, once); no row for a user who may not '
  'sign in.';
grant execute on function app_private.issue_user_otp(uuid) to plat_worker;

create function app_private.refuse_code() returns void
language sql volatile as $$
  select app_hidden.fail('BAD_USER_INPUT', 'This code is unknown, used or older than 15 minutes; request a new one.',
    '{"field": "token"}')
$$;

create function app_private.begin_reset(token text) returns void
language plpgsql stable security definer set search_path = pg_catalog, pg_temp as $$
begin
  if not exists (select from app_private.user_otps o where o.code_sha256 = sha256(convert_to(btrim(token), 'UTF8'))
      and o.expires_at > now()) then
    perform app_private.refuse_code();
  end if;
end $$;
comment on function app_private.begin_reset(text) is
  'Refuses a one-time code that is not open, before its new password is hashed; uses nothing up.';
grant execute on function app_private.begin_reset(text) to plat_authenticator;

create function app_public.reset_password(token text, password app_public.new_password,
  second_factor_code app_public.second_factor_code default null) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account uuid;
  result app_public.users;
begin
  if password is null then
    perform app_hidden.fail('BAD_USER_INPUT', 'A password must have at least 10 characters.', '{"field": "password"}');
  end if;
  delete from app_private.user_otps o using app_public.users u
    where o.code_sha256 = sha256(convert_to(btrim(token), 'UTF8')) and o.expires_at > now()
      and u.id = o.user_id and u.status in ('ACTIVE', 'INVITED') and u.deleted_at is null
    returning u.id into account;
  if account is null then
    perform app_private.refuse_code();
  end if;
  perform set_config('plat.user_id', account::text, true);
  perform set_config('plat.token_id', '', true);
  perform set_config('plat.session_id', '', true);
  -- The response is read as this user; and access to the mailbox alone does not lock out the owner of the
  -- second factor.
  perform app_private.require_second_factor(account, second_factor_code);
  perform app_private.set_password(account, password);
  perform app_private.end_access(account, 'PASSWORD_RESET', null, null, null, 'The password was reset.');
  -- The code came to this address, so it is theirs.
  update app_public.users u set email_verified_at = coalesce(u.email_verified_at, now()), status = 'ACTIVE'
    where u.id = account returning * into result;
  perform app_private.tell_account(account, 'PASSWORD_RESET');
  return app_hidden.masked(result);
end $$;
comment on function app_public.reset_password is
  E'@withoutViewer For those who cannot sign in; the token of the mail says who it is.\n@becomes id\n@arg token '
  'One-time code from the mail that `createUserOtp` sent.\n@arg password 10 characters or more.\n@arg '
  'second_factor_code Current code of the authenticator app, or an unused recovery code; required if the account '
  'has a second factor.\n\n'
  'Sets a new password and revokes all login tokens, access tokens and integrations of the user, such as calendar '
  'feeds; `accessEnding` of the result lists them.';

create function app_private.tg_user_identities__touch_user() returns trigger
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
begin
  -- Both are members of the user: their change is one of the user's version.
  update app_public.users u set updated_at = now() where u.id = new.user_id;
  return null;
end $$;

create function app_public.update_user(input jsonb, username text default null) returns app_public.users
language plpgsql volatile as $$
declare
  viewer_id uuid := app_hidden.require_whole_account();
  target uuid := app_hidden.record_id('users', input ->> 'id');
  phone text := btrim(input ->> 'phone');
  result app_public.users;
  violated text;
begin
  if target is distinct from viewer_id then
    if exists (select from app_public.users u where u.id = target) then
      perform app_hidden.fail('FORBIDDEN', 'Users can only update themselves.');
    end if;
    perform app_hidden.fail('NOT_FOUND', 'There is no such user.', '{"field": "id"}');
  end if;
  if phone <> '' then
    if phone !~ '^(\+|00)' then
      perform app_hidden.fail('BAD_USER_INPUT',
        'Specify the phone number with its country code, such as +1 416 555 0123; there is no default country for '
        'users.', '{"field": "phone"}');
    end if;
    input := input || jsonb_build_object('phone',
      '+' || regexp_replace(regexp_replace(phone, '^(\+|00)', ''), '\(0\)|[^0-9]', '', 'g'));
  end if;
  result := app_hidden.update_record(null::app_public.users, input);
  if input ? 'username' then
    update app_hidden.user_identities i set username = nullif(btrim(update_user.input ->> 'username'), '')
      where i.user_id = viewer_id;
    select u.* into result from app_hidden.masked_users u where u.id = viewer_id;
  end if;
  return result;
exception
  when unique_violation then
    get stacked diagnostics violated = constraint_name;
    if violated <> 'user_identities_username' then raise; end if;
    perform app_hidden.fail('CONFLICT', 'This user name is taken; choose another.', '{"field": "username"}');
  when check_violation then
    get stacked diagnostics violated = constraint_name;
    if violated in ('user_identities_username_format', 'short_text_length') then
      perform app_hidden.fail('BAD_USER_INPUT',
        'A user name has 2 to 50 letters, digits, dots, hyphens and underscores, and no @.', '{"field": "username"}');
    end if;
    raise;
end $$;
comment on function app_public.update_user is $$
@arg username Name for signing in, without @.

Updates the profile of the viewer's own account. Omitted fields stay unchanged.$$;
grant execute on function app_public.create_user_otp, app_public.reset_password to plat_user, plat_anonymous;
grant execute on function app_public.update_password, app_public.update_user to plat_user, plat_anonymous;
