-- Second factors: a code of an authenticator app (RFC 6238: SHA-1, six digits, 30 seconds), or one of ten recovery
-- codes. Codes of the app are verified outside of the database, which does not have the key of the secret; the database
-- receives the time step of a code, or the SHA-256 of a recovery code. Each is accepted once.
--
-- With a second factor, the password alone is not enough: the factor is required at login, to reset or change the
-- password, to change the email address, and to remove the factor. Only accounts with a confirmed address can have one:
-- nobody can lock the owner of an address out of an account that they did not create.

comment on domain app_public.second_factor_code is
  E'@transform proveSecondFactor\n\nCurrent code of the authenticator app, or an unused recovery code.';
comment on constraint second_factor_code_proved on domain app_public.second_factor_code is 'Not a valid code.';
comment on domain app_public.fresh_totp_secret is
  E'@transform freshTotpSecret\n@given\n\nA secret for an authenticator app that the service has just made: itself to '
  'be shown once, and sealed to be kept.';

comment on table app_private.second_factors is
  'The secret that the authenticator app of a user has, sealed; not asked for until a code has confirmed it.';
comment on column app_private.second_factors.last_step is
  'The step of time that the last accepted code was of: none of that or an earlier one is accepted again.';
comment on column app_private.second_factors.sealed is E'@impersonal\n\nThe secret, sealed.';
comment on table app_private.recovery_codes is 'SHA-256 of the recovery codes of a user, 80 random bits each.';

comment on type app_public.second_factor is 'The second factor of an account.';
comment on column app_public.second_factor.enabled_at is E'@notNull\n\nWhen members were first required to have it.';
comment on column app_public.second_factor.recovery_codes_left is E'@notNull\n\nNumber of unused recovery codes.';
comment on type app_public.second_factor_enrollment is 'Secret for the authenticator app; shown only once.';
comment on column app_public.second_factor_enrollment.secret is E'@notNull\n\nSecret in base32, for manual entry.';
comment on column app_public.second_factor_enrollment.uri is
  E'@notNull\n\nSecret as an otpauth:// URI, for a QR code.';
comment on column app_public.second_factor_enrollment.expires_at is
  E'@notNull\n\nDeadline for `confirmSecondFactor`.';
comment on type app_public.recovery_codes is
  'Recovery codes for a lost authenticator app; shown only once, to be stored separately.';
comment on column app_public.recovery_codes.codes is E'@notNull\n\nTen codes; each works once.';

-- Attempts. An attacker who guesses codes knows the password, so the limits are per account. They are separate for
-- each way to sign in, so that the owner of the mailbox can still set a new password.
create function app_private.second_factor_limits(user_id uuid, way text) returns table (key text, most int,
  within interval)
language sql stable as $$
  select app_private.limit_key(l.name, way || ' ' || user_id), o.most, o.within
  from (values ('second_factor.hour'), ('second_factor.day')) l (name)
  cross join lateral app_private.limit_of(l.name) o
  where user_id is not null
$$;
comment on function app_private.second_factor_limits(uuid, text) is 'What limits wrong codes for an account.';

create function app_private.refuse_codes(wait int) returns void
language plpgsql volatile as $$
begin
  if wait > 0 then
    perform app_hidden.fail('RATE_LIMITED', format('Too many wrong codes. Wait %s seconds.', wait),
      jsonb_build_object('retryAfterSeconds', wait));
  end if;
end $$;

create function app_private.user_by(way text, who text) returns uuid
language sql stable as $$
  select case way
    when 'LOGIN' then app_private.account_named(who)
    when 'RESET' then (select o.user_id from app_private.user_otps o
      where o.code_sha256 = sha256(convert_to(btrim(who), 'UTF8')) and o.expires_at > now())
    when 'VIEWER' then who::uuid end
$$;
comment on function app_private.user_by(text, text) is
  'The user whose second factor is asked for: by the name that they sign in with, the code of a mail, or their id.';

create function app_private.begin_second_factor(way text, who text) returns table (user_id uuid, sealed text)
language plpgsql volatile security definer rows 1 set search_path = pg_catalog, pg_temp as $$
#variable_conflict use_column
declare
  account constant uuid := app_private.user_by(way, who);
begin
  perform app_private.refuse_codes((select max(app_private.seconds_to_wait(l.key, l.most))
    from app_private.second_factor_limits(account, way) l));
  return query select f.user_id, f.sealed from app_private.second_factors f
    where f.user_id = account and (f.confirmed_at is not null or f.inserted_at > now() - interval '1 hour');
end $$;
comment on function app_private.begin_second_factor(text, text) is
  E'@step The password, or the code of the mail, is right; or the user is the viewer, whose token is verified.\n\nThe '
  'sealed secret that a code is to be compared with; counts nothing. RATE_LIMITED where there were too many wrong '
  'ones.';

create function app_private.second_factor_fits(user_id uuid, proof text) returns boolean
language sql stable as $$
  select case split_part(proof, ':', 1)
    when 'step' then exists (select from app_private.second_factors f where f.user_id = $1
      and encode(sha256(convert_to(f.sealed, 'UTF8')), 'hex') = split_part(proof, ':', 3)
      and split_part(proof, ':', 2)::bigint > coalesce(f.last_step, -1))
    when 'code' then exists (select from app_private.recovery_codes c where c.user_id = $1
      and c.code_sha256 = decode(split_part(proof, ':', 2), 'hex') and c.used_at is null)
    else false end
$$;
comment on function app_private.second_factor_fits(uuid, text) is
  'Whether a code would be accepted. That a step of time was computed with the secret is known by the hash of the '
  'sealed text, which only begin_second_factor gives.';

create function app_private.record_second_factor(way text, who text, proof text) returns void
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  account constant uuid := app_private.user_by(way, who);
  fits constant boolean := app_private.second_factor_fits(account, proof);
begin
  perform app_private.refuse_codes((select max(app_private.take_use(l.key, l.most, l.within, not fits))
    from app_private.second_factor_limits(account, way) l));
  if not fits and exists (select from app_private.second_factors f where f.user_id = account
      and f.confirmed_at is not null)
    -- Of the limit of the day: three wrong ones are more than a slip.
    and (select bool_and(app_private.seconds_to_wait(l.key, 3) > 0)
      from app_private.second_factor_limits(account, way) l)
    and app_private.is_within_limit('second_factor.notice', account::text) then
    perform app_private.tell_account(account, 'SECOND_FACTOR_GUESSED');
  end if;
end $$;
comment on function app_private.record_second_factor(text, text, text) is
  E'@step The password, or the code of the mail, is right; or the user is the viewer, whose token is verified.\n\n'
  'Counts a wrong code, in a transaction of its own; RATE_LIMITED where others have used the limit up meanwhile. '
  'The third one is reported to the user by mail.';
grant execute on function app_private.begin_second_factor, app_private.record_second_factor to plat_authenticator;

create function app_private.use_second_factor(user_id uuid, proof text, is_new boolean default false) returns boolean
language plpgsql volatile as $$
declare
  remaining int;
begin
  if proof is null or not app_private.second_factor_fits(user_id, proof) then
    return false;
  end if;
  if proof like 'step:%' then
    -- Of two requests with one code, the second one waits here and finds that it was used.
    update app_private.second_factors f set last_step = split_part(proof, ':', 2)::bigint
      where f.user_id = use_second_factor.user_id and (f.confirmed_at is null) = is_new
        and (f.confirmed_at is not null or f.inserted_at > now() - interval '1 hour')
        and coalesce(f.last_step, -1) < split_part(proof, ':', 2)::bigint;
    return found;
  end if;
  update app_private.recovery_codes c set used_at = now() where c.user_id = use_second_factor.user_id and not is_new
    and c.code_sha256 = decode(split_part(proof, ':', 2), 'hex') and c.used_at is null;
  if not found then
    return false;
  end if;
  select count(*) into remaining from app_private.recovery_codes c where c.user_id = use_second_factor.user_id
    and c.used_at is null;
  perform app_private.tell_account(user_id, 'RECOVERY_CODE_USED', jsonb_build_object('left', remaining));
  return true;
end $$;
comment on function app_private.use_second_factor(uuid, text, boolean) is
  'Accepts a code, this once; false where it is none. is_new: of a secret that waits for its first code.';

create function app_private.has_second_factor(user_id uuid) returns boolean
language sql stable as $$
  select exists (select from app_private.second_factors f where f.user_id = $1 and f.confirmed_at is not null)
$$;
comment on function app_private.has_second_factor(uuid) is 'Whether signing in asks for a second factor.';

create function app_private.require_second_factor(user_id uuid, proof text, missing text default 'FORBIDDEN',
  wrong text default 'BAD_USER_INPUT') returns void
language plpgsql volatile as $$
begin
  if not app_private.has_second_factor(user_id) then
    return;
  end if;
  if proof is null then
    perform app_hidden.fail(missing,
      'This account has a second factor: also send secondFactorCode, a code of the authenticator app or a recovery '
      'code.', '{"reason": "SECOND_FACTOR_REQUIRED", "field": "secondFactorCode"}');
  end if;
  if not app_private.use_second_factor(user_id, proof) then
    perform app_hidden.fail(wrong,
      'This code is wrong, already used, or too old; send the next one of the authenticator app.',
      '{"reason": "SECOND_FACTOR_WRONG", "field": "secondFactorCode"}');
  end if;
end $$;
comment on function app_private.require_second_factor(uuid, text, text, text) is
  'Takes the code of an account that has a second factor; with which code a missing or a wrong one is refused.';

create function app_private.require_password(user_id uuid, proof text, field text default 'password') returns void
language plpgsql volatile as $$
begin
  -- The row is locked: of two changes at once the second finds another hash than it was proved with.
  perform from app_private.user_passwords p where p.user_id = require_password.user_id and p.password_hash = proof
    for update;
  if not found then
    perform app_hidden.fail('BAD_USER_INPUT', 'This is not the password of your account.',
      jsonb_build_object('field', field));
  end if;
  perform app_private.forgive_tries(user_id);
end $$;
comment on function app_private.require_password(uuid, text, text) is
  'Refuses a user who has not given their password once more.';

-- The operations.
create function app_private.percent_encoded(value text) returns text
language sql immutable strict as $$
  select string_agg(case when c ~ '[A-Za-z0-9._~-]' then c
    else regexp_replace(upper(encode(convert_to(c, 'UTF8'), 'hex')), '(..)', '%\1', 'g') end, '' order by n)
  from regexp_split_to_table(value, '') with ordinality t (c, n)
$$;

create function app_public.enroll_second_factor(password app_public.password_proof,
  made app_public.fresh_totp_secret default null) returns app_public.second_factor_enrollment
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
  address text;
  result app_public.second_factor_enrollment;
begin
  perform app_hidden.require_confirmed_address();
  perform app_private.require_password(viewer, password);
  if app_private.has_second_factor(viewer) then
    perform app_hidden.fail('CONFLICT',
      'Your account already has a second factor; remove it first (disableSecondFactor) to set up another one.');
  end if;
  insert into app_private.second_factors as f (user_id, sealed) values (viewer, made ->> 'sealed')
    on conflict on constraint second_factors_pkey do update
      set sealed = excluded.sealed, last_step = null, inserted_at = excluded.inserted_at
      where f.confirmed_at is null;
  select i.email into address from app_hidden.user_identities i where i.user_id = viewer;
  result.secret := made ->> 'secret';
  result.uri := format('otpauth://totp/Plat:%s?secret=%s&issuer=Plat&algorithm=SHA1&digits=6&period=30',
    app_private.percent_encoded(address), result.secret);
  result.expires_at := now() + interval '1 hour';
  return result;
end $$;
comment on function app_public.enroll_second_factor is $$
@eachTime
@arg password Current password, to confirm the request.

Creates a secret for an authenticator app. It takes effect when `confirmSecondFactor` has accepted a code. Requires
a verified email address.$$;

create function app_private.give_recovery_codes(user_id uuid) returns app_public.recovery_codes
language plpgsql volatile as $$
declare
  alphabet constant text := '0123456789abcdefghjkmnpqrstvwxyz';
  bytes bytea;
  code text;
  result app_public.recovery_codes;
begin
  delete from app_private.recovery_codes c where c.user_id = give_recovery_codes.user_id;
  for n in 1 .. 10 loop
    bytes := public.gen_random_bytes(16);
    code := (select string_agg(substr(alphabet, get_byte(bytes, i) % 32 + 1, 1), '' order by i)
      from generate_series(0, 15) i);
    insert into app_private.recovery_codes (code_sha256, user_id)
      values (sha256(convert_to(code, 'UTF8')), give_recovery_codes.user_id);
    result.codes := result.codes || regexp_replace(code, '(.{4})(?=.)', '\1-', 'g');
  end loop;
  return result;
end $$;
comment on function app_private.give_recovery_codes(uuid) is
  'Ten new recovery codes, in an alphabet without letters that look like digits; the previous ones become invalid.';

create function app_public.confirm_second_factor(code app_public.second_factor_code) returns app_public.recovery_codes
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
begin
  perform from app_public.users u where u.id = viewer for no key update;
  if not app_private.use_second_factor(viewer, code, is_new => true) then
    perform app_hidden.fail('BAD_USER_INPUT', 'Not a valid code for the secret that enrollSecondFactor returned '
      'within the last hour; check the clock of the device and send its next code.', '{"field": "code"}');
  end if;
  update app_private.second_factors f set confirmed_at = now() where f.user_id = viewer;
  -- They were opened without it.
  perform app_private.end_sessions(viewer, app_hidden.setting('session_id')::uuid);
  perform app_private.tell_account(viewer, 'SECOND_FACTOR_ENABLED');
  return app_private.give_recovery_codes(viewer);
end $$;
comment on function app_public.confirm_second_factor is $$
@eachTime
@arg code Current code of the authenticator app, for the secret from `enrollSecondFactor`.

Enables the second factor of the viewer's account and returns ten recovery codes. All other sessions of the viewer
end; access tokens remain valid.$$;

create function app_public.renew_recovery_codes(password app_public.password_proof,
  second_factor_code app_public.second_factor_code) returns app_public.recovery_codes
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
begin
  perform app_private.require_password(viewer, password);
  if not app_private.has_second_factor(viewer) then
    perform app_hidden.fail('CONFLICT', 'Your account has no second factor.');
  end if;
  perform app_private.require_second_factor(viewer, second_factor_code);
  perform app_private.tell_account(viewer, 'RECOVERY_CODES_RENEWED');
  return app_private.give_recovery_codes(viewer);
end $$;
comment on function app_public.renew_recovery_codes is $$
@eachTime
@arg password Current password, to confirm the request.
@arg second_factor_code Current code of the authenticator app, or an unused recovery code.

Generates ten new recovery codes; the previous ones become invalid.$$;

create function app_public.disable_second_factor(password app_public.password_proof,
  second_factor_code app_public.second_factor_code) returns app_public.users
language plpgsql volatile security definer set search_path = pg_catalog, pg_temp as $$
declare
  viewer constant uuid := app_hidden.require_whole_account();
  result app_public.users;
begin
  perform from app_public.users u where u.id = viewer for no key update;
  perform app_private.require_password(viewer, password);
  if app_private.required_by(viewer) is not null then
    perform app_hidden.fail('CONFLICT', format('%s requires a second factor of its members, so it cannot be removed; '
      'renewRecoveryCodes creates new recovery codes.', app_private.required_by(viewer)));
  end if;
  perform app_private.require_second_factor(viewer, second_factor_code);
  perform app_private.remove_second_factor(viewer, 'SECOND_FACTOR_DISABLED');
  select * into result from app_public.users u where u.id = viewer;
  return app_hidden.masked(result);
end $$;
comment on function app_public.disable_second_factor is $$
@arg password Current password, to confirm the request.
@arg second_factor_code Current code of the authenticator app, or an unused recovery code.

Removes the second factor of the viewer's account and its recovery codes. Refused while an organization of the
viewer requires a second factor.$$;

create function app_private.remove_second_factor(user_id uuid, change text, facts jsonb default '{}') returns void
language plpgsql volatile as $$
begin
  delete from app_private.second_factors f where f.user_id = remove_second_factor.user_id;
  if found then
    perform app_private.tell_account(user_id, change, facts);
  end if;
  delete from app_private.recovery_codes c where c.user_id = remove_second_factor.user_id;
end $$;
comment on function app_private.remove_second_factor(uuid, text, jsonb) is
  'Takes a second factor away and tells its user.';
grant execute on function app_public.enroll_second_factor, app_public.confirm_second_factor,
  app_public.renew_recovery_codes, app_public.disable_second_factor to plat_user, plat_anonymous;

create function app_public.users_second_factor(u app_public.users) returns app_public.second_factor
language sql stable security definer set search_path = pg_catalog, pg_temp as $$
  select row(f.confirmed_at, (select count(*) from app_private.recovery_codes c where c.user_id = u.id
    and c.used_at is null))::app_public.second_factor
  from app_private.second_factors f
  where f.user_id = u.id and f.confirmed_at is not null and u.id = app_public.current_user_id()
    and app_hidden.has_whole_account()
$$;
grant execute on function app_public.users_second_factor to plat_user, plat_anonymous;
comment on function app_public.users_second_factor is
  'Second factor of the account; null if there is none, and for other users.';
